#include <array>

#include "zoo/fetch.h"

namespace armilla {
namespace {

// The number after the last dash is the ONNX operator set; the files of one network differ in little else.
constexpr std::array kZooDownloads = {
    ZooDownload{"bertsquad-12", "5f0d96a9e6b8a4a2e59f9636f8bbad09ee8a0c58c8212027cc17c5fcc9659e55",
                Bytes(435852736), "BERT-base with a question-answering head, 256 tokens"},
    ZooDownload{"bvlcalexnet-12", "6b0da9510f27f234ee96a85dc3809dd210150fdefad87f6850f9788513216945",
                Bytes(243863787), "AlexNet (two towers), 224x224 images"},
    ZooDownload{"caffenet-12", "ea563e5c47d1f58e1717cf1a2d8bf288b8adc07af0ad228b622096cd243aeecb",
                Bytes(243863798), "CaffeNet, AlexNet's variant in Caffe, 224x224 images"},
    ZooDownload{"densenet-12", "0294e7e88e5b3360de9b0fdc321baf9e6ef18b7f058c4536caae3b9f18ed9ed5",
                Bytes(32726877), "DenseNet-121, 224x224 images"},
    ZooDownload{"efficientnet-lite4-11", "d111689907c06eea7c82e4833ddef758da6453b9d4cf60b7e99ca05c7cbd9c12",
                Bytes(51946641), "EfficientNet-Lite4, 224x224 images"},
    ZooDownload{"googlenet-12", "c99c507058eaf41de8723408fdda7db8325cb57f0a89f2ee07a716d6e963e14e",
                Bytes(28021836), "GoogLeNet from Caffe, 224x224 images"},
    ZooDownload{"gpt2-10", "a4b41071a9fd8fd5591d74d6c7e3a850feaf161f7289148a3b845c84f75c55e0",
                Bytes(548227537), "GPT-2 (117 M parameters), no head"},
    ZooDownload{"gpt2-lm-head-10", "12fbb1ec2d2d70c8ebd21a290a348a4109447b98582af64c6f93b6526d5c8f35",
                Bytes(664871060), "GPT-2 (117 M parameters) with its language-model head"},
    ZooDownload{"inception-v1-12", "814b31a6316873bd03d2d808415ce1f40a7bf48ad88eab5ecc3cdc8dc6cf38ec",
                Bytes(28021958), "Inception v1 from Caffe2, 224x224 images"},
    ZooDownload{"inception-v2-9", "37ed4aa93f817fd0d1cc19bda045ebd70f18d0887a5f51e66ecd0ed8fd5a65c2",
                Bytes(45042799), "Inception v2, 224x224 images"},
    ZooDownload{"mnist-12", "5c688690f8bacf667d4c2074af5ad0646ca328d7ab03eccf944a65b320171bdd", Bytes(26143),
                "a small convolutional network for handwritten digits, 28x28 images"},
    ZooDownload{"mobilenetv2-7", "c1c513582d56afceff8516c73804e484c81c6a830712ab6d682253f4a3cd042f",
                Bytes(14246826), "MobileNet v2, 224x224 images"},
    ZooDownload{"mobilenetv2-12", "c0c3f76d93fa3fd6580652a45618618a220fced18babf65774ed169de0432ad5",
                Bytes(13964571), "MobileNet v2, 224x224 images"},
    ZooDownload{"resnet18-v1-7", "4e8f8653e7a2222b3904cc3fe8e304cd8b339ce1d05fd24688162f86fb6df52c",
                Bytes(46820737), "ResNet-18, 224x224 images"},
    ZooDownload{"resnet18-v2-7", "3b4d048057854022232aa20bf68262e31718ab7119a17f920b8a2dc1433f824b",
                Bytes(46806737), "ResNet-18 with pre-activation, 224x224 images"},
    ZooDownload{"resnet34-v1-7", "883a41b2e30ddc2e422c108b091b5e70b92d37dc5c345a2c563dcae27971e2cc",
                Bytes(87302588), "ResNet-34, 224x224 images"},
    ZooDownload{"resnet34-v2-7", "3d3815e25f4b1ea967e2a526a3b27ef2a03af1725bdc199a63a271c26862d914",
                Bytes(87288587), "ResNet-34 with pre-activation, 224x224 images"},
    ZooDownload{"resnet50-v1-7", "af16a04a6ec48ac494065d4439fe9dea590d337b9ca6dc328160ccf04a217b9c",
                Bytes(102583340), "ResNet-50, 224x224 images"},
    ZooDownload{"resnet50-v1-12", "3f03fdef724b22947eed826f1eef1dc5c34151bb4c37d634f1db89dfa2dd1526",
                Bytes(102576593), "ResNet-50, 224x224 images"},
    ZooDownload{"resnet50-v2-7", "79102261eb6e5fd7af5d27f41316293e388c5cb691e5d25bfb035c4f64fefe31",
                Bytes(102442452), "ResNet-50 with pre-activation, 224x224 images"},
    ZooDownload{"resnet101-v1-7", "760702f6ec0138f71ebac66f4e95d1c72dc9267a8544f4d4667a53075fd0497c",
                Bytes(178914043), "ResNet-101, 224x224 images"},
    ZooDownload{"resnet101-v2-7", "3a0a819ea0953fb4700b0d98e43540aeee253e5b4c503c552b0c7979fc67767d",
                Bytes(178682301), "ResNet-101 with pre-activation, 224x224 images"},
    ZooDownload{"resnet152-v1-7", "b0ec92437bf8c9d0739bf9bafdea9638e13f9e3c1e2fb766ad546cc182fd3f6d",
                Bytes(241816206), "ResNet-152, 224x224 images"},
    ZooDownload{"resnet152-v2-7", "40fb3f6dd313ba786a2c8077a0ef7d7b4afeda5d037365400d3a7fbc2b1bee64",
                Bytes(241503848), "ResNet-152 with pre-activation, 224x224 images"},
    ZooDownload{"roberta-base-11", "ad476a33a4b227f6e6b2e1c7192df1b61640657f26b390857ab943de66236c0b",
                Bytes(498649858), "RoBERTa-base"},
    ZooDownload{"shufflenet-v2-12", "ea69821b4dd374ae2f33f9710dd1229ac263d0ee5b5a46ca3521f6483e1ba035",
                Bytes(9218556), "ShuffleNet v2, 224x224 images"},
    ZooDownload{"squeezenet1.0-12", "dec81a8684617770b3cf13fadc1d92565d1d453d23935fc6388b792d99c992bd",
                Bytes(4952956), "SqueezeNet 1.0, 224x224 images"},
    ZooDownload{"squeezenet1.1-7", "1eeff551a67ae8d565ca33b572fc4b66e3ef357b0eb2863bb9ff47a918cc4088",
                Bytes(4956208), "SqueezeNet 1.1, 224x224 images"},
    ZooDownload{"vgg16-7", "f20805a3ecccaa88647bbab4ad011ff2412a9838485ea844de0fcbce349820b9",
                Bytes(553437328), "VGG-16, 224x224 images"},
    ZooDownload{"vgg16-12", "722c42f53ca03a5480296bf8f9c85a151de3eed9ec982d7d2302ff6e2900c67b",
                Bytes(553437752), "VGG-16, 224x224 images"},
    ZooDownload{"vgg16-bn-7", "4fdceabf1ef715c9ed3020fa2eac1cb2a448296c086b03633c80cf47e1c5afce",
                Bytes(553512191), "VGG-16 with batch normalisation, 224x224 images"},
    ZooDownload{"vgg19-7", "692f9f927f1df1b89033787a77a73eac59fd9b3344f9ecdf0b13221e41c2046f",
                Bytes(574677321), "VGG-19, 224x224 images"},
    ZooDownload{"vgg19-bn-7", "ce0987dfa6228ad29708013f38b7f73cbc14ca6066a05fc22ee49b35871c63ed",
                Bytes(574774380), "VGG-19 with batch normalisation, 224x224 images"},
    ZooDownload{"zfnet512-12", "c975ca6a24c0a2e1584c6f82667e0ac9c06084fc7769d267f71b4a154d1f1c72",
                Bytes(349005501), "ZFNet-512, 224x224 images"},
};

}  // namespace

std::span<const ZooDownload> zoo_downloads() {
  return kZooDownloads;
}

}  // namespace armilla
