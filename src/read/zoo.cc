#include "read/zoo.h"

#include <array>

namespace armilla {
namespace {

constexpr std::array kZooModels = {
    ZooModel{"alexnet", "models/alexnet.onnx", "AlexNet (one tower), 224x224 images"},
    ZooModel{"bert-large", "models/bert-large.onnx",
             "BERT-large encoder with pooler: 24 layers, hidden 1024, 512 tokens"},
    ZooModel{"densenet121", "models/densenet121.onnx", "DenseNet-121, 224x224 images"},
    ZooModel{"inception_v3", "models/inception_v3.onnx",
             "Inception v3 with its auxiliary classifier, 299x299 images"},
    ZooModel{"mobilenet_v2", "models/mobilenet_v2.onnx", "MobileNet v2, width 1.0, 224x224 images"},
    ZooModel{"resnet101", "models/resnet101.onnx", "ResNet-101 (v1.5), 224x224 images"},
    ZooModel{"resnet152", "models/resnet152.onnx", "ResNet-152 (v1.5), 224x224 images"},
    ZooModel{"resnet18", "models/resnet18.onnx", "ResNet-18, 224x224 images"},
    ZooModel{"resnet34", "models/resnet34.onnx", "ResNet-34, 224x224 images"},
    ZooModel{"resnet50", "models/resnet50.onnx", "ResNet-50 (v1.5), 224x224 images"},
    ZooModel{"squeezenet", "models/squeezenet.onnx", "SqueezeNet 1.1, 224x224 images"},
    ZooModel{"vgg11", "models/vgg11.onnx", "VGG-11 (A), 224x224 images"},
    ZooModel{"vgg11_bn", "models/vgg11_bn.onnx", "VGG-11 with batch normalisation, 224x224 images"},
    ZooModel{"vgg13", "models/vgg13.onnx", "VGG-13 (B), 224x224 images"},
    ZooModel{"vgg13_bn", "models/vgg13_bn.onnx", "VGG-13 with batch normalisation, 224x224 images"},
    ZooModel{"vgg16", "models/vgg16.onnx", "VGG-16 (D), 224x224 images"},
    ZooModel{"vgg16_bn", "models/vgg16_bn.onnx", "VGG-16 with batch normalisation, 224x224 images"},
    ZooModel{"vgg19", "models/vgg19.onnx", "VGG-19 (E), 224x224 images"},
    ZooModel{"vgg19_bn", "models/vgg19_bn.onnx", "VGG-19 with batch normalisation, 224x224 images"},
    ZooModel{"vit_b_16", "models/vit_b_16.onnx",
             "Vision Transformer ViT-B/16: 12 layers, hidden 768, 224x224 images"},
};

}  // namespace

std::span<const ZooModel> zoo_models() {
  return kZooModels;
}

}  // namespace armilla
