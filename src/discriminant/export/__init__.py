"""Fitted models as SQL, ONNX or plain Python; nothing of this package is needed to run them."""
