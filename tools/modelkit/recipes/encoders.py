"""Encoders: BERT, XLM-RoBERTa, ModernBERT and Nomic BERT, each also with the head of a cross-encoder."""

from ..tensor import TensorList
from . import CustomFamily

BERT = {
    "architectures": ["BertModel"], "model_type": "bert", "hidden_size": 96, "num_hidden_layers": 3,
    "intermediate_size": 160, "num_attention_heads": 6, "vocab_size": 512, "max_position_embeddings": 320,
    "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0, "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1, "position_embedding_type": "absolute", "classifier_dropout": None,
}
ROBERTA = BERT | {
    "architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta", "max_position_embeddings": 322, "type_vocab_size": 1,
    "layer_norm_eps": 1e-5, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
}
MODERNBERT = {
    "architectures": ["ModernBertModel"], "model_type": "modernbert", "hidden_size": 96, "num_hidden_layers": 4,
    "intermediate_size": 80, "num_attention_heads": 6, "vocab_size": 512, "max_position_embeddings": 512,
    "hidden_activation": "gelu", "norm_eps": 1e-5, "norm_bias": False, "local_attention": 32, "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "attention_bias": False, "mlp_bias": False,
    "classifier_pooling": "mean", "classifier_bias": False, "classifier_activation": "gelu", "reference_compile": True,
    "pad_token_id": 3, "cls_token_id": 4, "sep_token_id": 5,
}
NOMIC = {
    "architectures": ["NomicBertModel"], "model_type": "nomic_bert", "n_embd": 96, "n_layer": 3, "n_inner": 160, "n_head": 6,
    "vocab_size": 512, "n_positions": 512, "max_trained_positions": 320, "type_vocab_size": 2, "layer_norm_epsilon": 1e-12,
    "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "rotary_scaling_factor": None,
    "activation_function": "swiglu", "prenorm": False, "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False,
    "pad_token_id": 0,
}
BIAS = 0.1


def one_label(config: dict, architecture: str) -> dict:
    """Returns the config of the family's cross-encoder."""
    return config | {"architectures": [architecture], "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}


def is_classifier(config: dict) -> bool:
    return config["architectures"][0].endswith("ForSequenceClassification")


def _layer_norm(found: TensorList, name: str, width: int, bias: bool = True) -> None:
    found.norm(name, width)
    if bias:
        found.values(f"{name}.bias", (width,), std=BIAS)


def _tables(found: TensorList, at: str, config: dict, hidden: int) -> None:
    found.values(f"{at}word_embeddings.weight", (config["vocab_size"], hidden))
    if "max_position_embeddings" in config:
        found.values(f"{at}position_embeddings.weight", (config["max_position_embeddings"], hidden), std=0.3)
    found.values(f"{at}token_type_embeddings.weight", (config["type_vocab_size"], hidden), std=0.3)


def bert(config: dict) -> TensorList:
    """BERT and RoBERTa. With a head, names begin with the model's."""
    found, hidden, inner = TensorList(), config["hidden_size"], config["intermediate_size"]
    is_roberta, has_head = config["model_type"] != "bert", is_classifier(config)
    prefix = ("roberta." if is_roberta else "bert.") * has_head
    _tables(found, f"{prefix}embeddings.", config, hidden)
    _layer_norm(found, f"{prefix}embeddings.LayerNorm", hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"{prefix}encoder.layer.{layer}"
        for each in ("query", "key", "value"):
            found.linear(f"{at}.attention.self.{each}", hidden, hidden, BIAS)
        found.linear(f"{at}.attention.output.dense", hidden, hidden, BIAS)
        _layer_norm(found, f"{at}.attention.output.LayerNorm", hidden)
        found.linear(f"{at}.intermediate.dense", inner, hidden, BIAS)
        found.linear(f"{at}.output.dense", hidden, inner, BIAS)
        _layer_norm(found, f"{at}.output.LayerNorm", hidden)
    if not is_roberta or not has_head:
        found.linear(f"{prefix}pooler.dense", hidden, hidden, BIAS)  # without a head, nothing reads it
    if has_head and is_roberta:
        found.linear("classifier.dense", hidden, hidden, BIAS)
        found.linear("classifier.out_proj", len(config["id2label"]), hidden, BIAS)
    elif has_head:
        found.linear("classifier", len(config["id2label"]), hidden, BIAS)
    return found


def modernbert(config: dict) -> TensorList:
    found, hidden, inner = TensorList(), config["hidden_size"], config["intermediate_size"]
    has_head, bias = is_classifier(config), config["norm_bias"]
    prefix = "model." * has_head
    found.values(f"{prefix}embeddings.tok_embeddings.weight", (config["vocab_size"], hidden))
    _layer_norm(found, f"{prefix}embeddings.norm", hidden, bias)
    for layer in range(config["num_hidden_layers"]):
        at = f"{prefix}layers.{layer}"
        if layer > 0:
            _layer_norm(found, f"{at}.attn_norm", hidden, bias)
        found.linear(f"{at}.attn.Wqkv", 3 * hidden, hidden)
        found.linear(f"{at}.attn.Wo", hidden, hidden)
        _layer_norm(found, f"{at}.mlp_norm", hidden, bias)
        found.linear(f"{at}.mlp.Wi", 2 * inner, hidden)
        found.linear(f"{at}.mlp.Wo", hidden, inner)
    _layer_norm(found, f"{prefix}final_norm", hidden, bias)
    if has_head:
        found.linear("head.dense", hidden, hidden, BIAS * config["classifier_bias"])
        _layer_norm(found, "head.norm", hidden, bias)
        found.linear("classifier", len(config["id2label"]), hidden, BIAS)
    return found


def nomic(config: dict) -> TensorList:
    found, hidden, inner = TensorList(), config["n_embd"], config["n_inner"]
    _tables(found, "embeddings.", config, hidden)
    _layer_norm(found, "emb_ln", hidden)
    for layer in range(config["n_layer"]):
        at = f"encoder.layers.{layer}"
        found.linear(f"{at}.attn.Wqkv", 3 * hidden, hidden)
        found.linear(f"{at}.attn.out_proj", hidden, hidden)
        _layer_norm(found, f"{at}.norm1", hidden)
        found.linear(f"{at}.mlp.fc11", inner, hidden)
        found.linear(f"{at}.mlp.fc12", inner, hidden)
        found.linear(f"{at}.mlp.fc2", hidden, inner)
        _layer_norm(found, f"{at}.norm2", hidden)
    return found


FAMILIES = {
    "bert": CustomFamily("BERT: norms after the sums, positions and types from tables", BERT, bert, pre="wordpiece"),
    "bert-scores": CustomFamily(
        "a cross-encoder made of BERT", one_label(BERT, "BertForSequenceClassification"), bert, pre="wordpiece"),
    "roberta": CustomFamily(
        "RoBERTa: BERT with other positions", ROBERTA | {"architectures": ["RobertaModel"], "model_type": "roberta"}, bert,
        pre="unigram"),
    "xlm-roberta": CustomFamily("XLM-RoBERTa: BERT with other positions", ROBERTA, bert, pre="unigram"),
    "xlm-roberta-scores": CustomFamily(
        "a cross-encoder made of XLM-RoBERTa", one_label(ROBERTA, "XLMRobertaForSequenceClassification"), bert, pre="unigram"),
    "modernbert": CustomFamily("ModernBERT: rope, windows to both sides, a gated MLP", MODERNBERT, modernbert, pre="modernbert"),
    "modernbert-scores": CustomFamily(
        "a cross-encoder made of ModernBERT", one_label(MODERNBERT, "ModernBertForSequenceClassification"), modernbert,
        pre="modernbert"),
    "nomic_bert": CustomFamily("Nomic BERT: BERT with rope and a gated MLP", NOMIC, nomic, pre="wordpiece"),
}
