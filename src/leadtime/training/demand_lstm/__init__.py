"""A history of demand → a bidirectional LSTM of its last hour, fitted with JAX, served as ONNX (extra ``lstm``).

JAX and not torch: from the package index torch is a CUDA build of several GB; jax and optax with onnxruntime are about
1 GB, and the ONNX LSTM operator is written by hand from the weights (record 0020).
"""
