"""The content of an ONNX file → an onnxruntime session on the CPU, imported when one is wanted."""

from typing import Any


def open_session(content: bytes, threads: int) -> Any:
    """``threads``: of onnxruntime. Raises ImportError where it is not installed, ValueError where it cannot load
    ``content``, with its first line."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - onnxruntime's own classes are not importable by name
        raise ValueError(f"onnxruntime cannot load it ({str(error).splitlines()[0]})") from None
