#include "zoo/zoo.h"

#include <algorithm>
#include <array>

namespace armilla {
namespace {

// By name. Each file is one of models/, compiled in by its path (zoo/embedded.h); a test compares both lists.
constexpr std::array kZooModels = {
    ZooModel{"alexnet", "models/alexnet.onnx", "AlexNet (one tower), 224x224 images"},
    ZooModel{"bert-exlarge", "models/bert-exlarge.yaml",
             "BERT of 48 layers with its pretraining heads: hidden 1024, 512 tokens"},
    ZooModel{"bert-large", "models/bert-large.onnx",
             "BERT-large encoder with pooler: 24 layers, hidden 1024, 512 tokens"},
    ZooModel{"deepseek-v2", "models/deepseek-v2.yaml",
             "DeepSeek-V2: 60 layers, hidden 5120, 6 of 160 experts, 4096 tokens"},
    ZooModel{"deepseek-v3", "models/deepseek-v3.yaml",
             "DeepSeek-V3, the main model: 61 layers, hidden 7168, 8 of 256 experts, 4096 tokens"},
    ZooModel{"deepseek-v3-mtp", "models/deepseek-v3-mtp.yaml",
             "DeepSeek-V3 as it is pretrained, with one multi-token-prediction layer"},
    ZooModel{"densenet121", "models/densenet121.onnx", "DenseNet-121, 224x224 images"},
    ZooModel{"dlrm", "models/dlrm.yaml",
             "DLRM of MLPerf Training v0.7 to v2.1: 26 Criteo Terabyte tables of 128 numbers"},
    ZooModel{"gpt-oss-120b", "models/gpt-oss-120b.yaml",
             "gpt-oss-120b: 36 layers, hidden 2880, 4 of 128 experts, 4096 tokens"},
    ZooModel{"gpt-oss-20b", "models/gpt-oss-20b.yaml",
             "gpt-oss-20b: 24 layers, hidden 2880, 4 of 32 experts, 4096 tokens"},
    ZooModel{"gpt2-345m", "models/gpt2-345m.yaml", "GPT-2 medium: 24 layers, hidden 1024, 1024 tokens"},
    ZooModel{"gpt3-175b", "models/gpt3-175b.yaml",
             "GPT-3 of 175 billion parameters: 96 layers, hidden 12288, 2048 tokens"},
    ZooModel{"inception_v3", "models/inception_v3.onnx",
             "Inception v3 with its auxiliary classifier, 299x299 images"},
    ZooModel{"jamba-v0.1", "models/jamba-v0.1.yaml",
             "Jamba 52B: 28 Mamba and 4 attention layers, 16 experts in every other, 12B active"},
    ZooModel{"llama2-13b", "models/llama2-13b.yaml", "Llama 2 13B: 40 layers, hidden 5120, 4096 tokens"},
    ZooModel{"llama2-70b", "models/llama2-70b.yaml", "Llama 2 70B: 80 layers, hidden 8192, 4096 tokens"},
    ZooModel{"llama2-7b", "models/llama2-7b.yaml", "Llama 2 7B: 32 layers, hidden 4096, 4096 tokens"},
    ZooModel{"llama3-405b", "models/llama3-405b.yaml", "Llama 3 405B: 126 layers, hidden 16384, 8192 tokens"},
    ZooModel{"llama3-70b", "models/llama3-70b.yaml", "Llama 3 70B: 80 layers, hidden 8192, 8192 tokens"},
    ZooModel{"llama3-8b", "models/llama3-8b.yaml", "Llama 3 8B: 32 layers, hidden 4096, 8192 tokens"},
    ZooModel{"llama4-maverick", "models/llama4-maverick.yaml",
             "Llama 4 Maverick: 48 layers, hidden 5120, 1 of 128 experts and a shared one, 8192 tokens"},
    ZooModel{"llama4-scout", "models/llama4-scout.yaml",
             "Llama 4 Scout: 48 layers, hidden 5120, 1 of 16 experts and a shared one, 8192 tokens"},
    ZooModel{"mamba-2.8b", "models/mamba-2.8b.yaml", "Mamba 2.8B: 64 layers, hidden 2560, 2048 tokens"},
    ZooModel{"mamba2-2.7b", "models/mamba2-2.7b.yaml",
             "Mamba-2 2.7B: 64 layers, hidden 2560, 80 heads, 2048 tokens"},
    ZooModel{"megatron-1.7b", "models/megatron-1.7b.yaml",
             "Megatron GPT of 1.7 billion parameters: 24 layers, hidden 2304, 2048 tokens"},
    ZooModel{"megatron-145b", "models/megatron-145b.yaml",
             "Megatron GPT of 145.6 billion parameters: 80 layers, hidden 12288, 2048 tokens"},
    ZooModel{"megatron-18b", "models/megatron-18b.yaml",
             "Megatron GPT of 18.4 billion parameters: 40 layers, hidden 6144, 2048 tokens"},
    ZooModel{"megatron-1t", "models/megatron-1t.yaml",
             "Megatron GPT of 1008.0 billion parameters: 128 layers, hidden 25600, 2048 tokens"},
    ZooModel{"megatron-3.6b", "models/megatron-3.6b.yaml",
             "Megatron GPT of 3.6 billion parameters: 30 layers, hidden 3072, 2048 tokens"},
    ZooModel{"megatron-310b", "models/megatron-310b.yaml",
             "Megatron GPT of 310.1 billion parameters: 96 layers, hidden 16384, 2048 tokens"},
    ZooModel{"megatron-39b", "models/megatron-39b.yaml",
             "Megatron GPT of 39.1 billion parameters: 48 layers, hidden 8192, 2048 tokens"},
    ZooModel{"megatron-530b", "models/megatron-530b.yaml",
             "Megatron-Turing NLG, 530 billion parameters: 105 layers, hidden 20480, 2048 tokens"},
    ZooModel{"megatron-7.5b", "models/megatron-7.5b.yaml",
             "Megatron GPT of 7.5 billion parameters: 36 layers, hidden 4096, 2048 tokens"},
    ZooModel{"megatron-76b", "models/megatron-76b.yaml",
             "Megatron GPT of 76.1 billion parameters: 60 layers, hidden 10240, 2048 tokens"},
    ZooModel{"mixtral-8x7b", "models/mixtral-8x7b.yaml",
             "Mixtral 8x7B: 32 layers, hidden 4096, 2 of 8 experts, 4096 tokens"},
    ZooModel{"mobilenet_v2", "models/mobilenet_v2.onnx", "MobileNet v2, width 1.0, 224x224 images"},
    ZooModel{"nemotron-3-nano", "models/nemotron-3-nano.yaml",
             "Nemotron 3 Nano 30B-A3B: 23 Mamba-2, 6 attention and 23 expert layers, 128 experts"},
    ZooModel{"nemotron-h-56b", "models/nemotron-h-56b.yaml",
             "Nemotron-H 56B: 54 Mamba-2, 54 MLP and 10 attention layers, 8192 tokens"},
    ZooModel{"qwen3-235b-a22b", "models/qwen3-235b-a22b.yaml",
             "Qwen3-235B-A22B: 94 layers, hidden 4096, 8 of 128 experts, 4096 tokens"},
    ZooModel{"qwen3-30b-a3b", "models/qwen3-30b-a3b.yaml",
             "Qwen3-30B-A3B: 48 layers, hidden 2048, 8 of 128 experts, 4096 tokens"},
    ZooModel{"resnet101", "models/resnet101.onnx", "ResNet-101 (v1.5), 224x224 images"},
    ZooModel{"resnet152", "models/resnet152.onnx", "ResNet-152 (v1.5), 224x224 images"},
    ZooModel{"resnet18", "models/resnet18.onnx", "ResNet-18, 224x224 images"},
    ZooModel{"resnet34", "models/resnet34.onnx", "ResNet-34, 224x224 images"},
    ZooModel{"resnet50", "models/resnet50.onnx", "ResNet-50 (v1.5), 224x224 images"},
    ZooModel{"squeezenet", "models/squeezenet.onnx", "SqueezeNet 1.1, 224x224 images"},
    ZooModel{"t5-large", "models/t5-large.yaml", "T5-large: 24 + 24 layers, hidden 1024, 512 + 128 tokens"},
    ZooModel{"vgg11", "models/vgg11.onnx", "VGG-11 (A), 224x224 images"},
    ZooModel{"vgg11_bn", "models/vgg11_bn.onnx", "VGG-11 with batch normalisation, 224x224 images"},
    ZooModel{"vgg13", "models/vgg13.onnx", "VGG-13 (B), 224x224 images"},
    ZooModel{"vgg13_bn", "models/vgg13_bn.onnx", "VGG-13 with batch normalisation, 224x224 images"},
    ZooModel{"vgg16", "models/vgg16.onnx", "VGG-16 (D), 224x224 images"},
    ZooModel{"vgg16_bn", "models/vgg16_bn.onnx", "VGG-16 with batch normalisation, 224x224 images"},
    ZooModel{"vgg19", "models/vgg19.onnx", "VGG-19 (E), 224x224 images"},
    ZooModel{"vgg19_bn", "models/vgg19_bn.onnx", "VGG-19 with batch normalisation, 224x224 images"},
    ZooModel{"vit-l-16", "models/vit-l-16.yaml",
             "Vision Transformer ViT-L/16: 24 layers, hidden 1024, 224x224 images"},
    ZooModel{"vit_b_16", "models/vit_b_16.onnx",
             "Vision Transformer ViT-B/16: 12 layers, hidden 768, 224x224 images"},
};

}  // namespace

std::span<const ZooModel> zoo_models() {
  return kZooModels;
}

bool is_path(std::string_view name_or_path) {
  if (name_or_path.find('/') != std::string_view::npos || name_or_path == "-") return true;
  const auto dot = name_or_path.find_last_of('.');
  if (dot == std::string_view::npos) return false;
  return dot + 1 == name_or_path.size() || name_or_path[dot + 1] < '0' || name_or_path[dot + 1] > '9';
}

bool names_model(const std::string& name_or_path) {
  const bool compiled_in = std::any_of(kZooModels.begin(), kZooModels.end(),
                                       [&](const ZooModel& model) { return model.name == name_or_path; });
  // The cache is asked last: it is a look at the disk.
  return compiled_in || (!is_path(name_or_path) && find_cached_model(name_or_path));
}

}  // namespace armilla
