"""The templates, in order of preference within each signal. Names are of the exporters' own documentation.

cAdvisor and kubelet, kube-state-metrics 2.x, dcgm-exporter 3 and 4, vLLM, Triton 23.05 and later, KServe 0.10 and later
(its Python model server; Knative's queue-proxy), SGLang, TGI, OpenTelemetry's HTTP conventions since 1.21, Istio,
ingress-nginx, client libraries' http_requests_total. None was read from a running exporter here: docs/prometheus.md.
"""

from typing import Any

from leadtime.domain.series import Unit
from leadtime.sources.metric_templates import Kind, Signal, Template

_KSM, _POD = "kube-state-metrics", "kubelet (cAdvisor)"
_CONTAINERS = 'container!="",container!="POD"'


def _of(  # noqa: PLR0917 - rows of a table
    signal: Signal, exporter: str, metric: str, kind: Kind, unit: Unit, why: str, *, name: str = "", **more: Any
) -> Template:
    return Template(
        name=name or metric.replace(":", "_").lower(), signal=signal, exporter=exporter, metric=metric, kind=kind,
        unit=unit, why=why, **more,
    )  # fmt: skip


def _requests(exporter: str, metric: str, why: str, **more: Any) -> Template:
    return _of(Signal.REQUEST_RATE, exporter, metric, Kind.COUNTER, Unit.REQUESTS_PER_S, why, **more)


def _latency(exporter: str, metric: str, why: str, **more: Any) -> Template:
    return _of(
        Signal.LATENCY, exporter, metric, Kind.HISTOGRAM, Unit.SECONDS, why, name=f"{metric.replace(':', '_')}_p95",
        **more,
    )  # fmt: skip


_DESTINATION = {"matchers": 'reporter="destination"', "workload": "destination_workload",
                "namespace": "destination_workload_namespace"}  # fmt: skip
_EXPORTED = {"workload": "exported_pod", "namespace": "exported_namespace"}
_INGRESS = {"workload": "exported_service", "namespace": "exported_namespace"}

REQUEST_RATE = (
    _requests("vLLM", "vllm:request_success_total", "finished requests, by the engine itself"),
    _requests("Triton", "nv_inference_request_success", "finished requests, by the server itself"),
    _requests("SGLang", "sglang:num_requests_total", "requests, by the engine itself"),
    _requests("TGI", "tgi_request_count", "requests, by the router itself"),
    _requests("Istio", "istio_requests_total", "as the receiving side saw them, rejected ones too", **_DESTINATION),
    _requests(
        "OpenTelemetry SDK", "http_server_request_duration_seconds_count", "requests, HTTP conventions since 1.21"
    ),
    _requests("client library", "http_requests_total", "the usual name; what it counts is the application's word"),
    _requests("client library", "http_request_duration_seconds_count", "where only a duration is kept"),
    _requests("gRPC middleware", "grpc_server_handled_total", "finished calls"),
    _requests("KServe (Knative)", "revision_request_count", "by queue-proxy, beside the model server"),
    _requests("KServe", "request_predict_seconds_count", "predictions of the Python model server"),
    _requests("ingress-nginx", "nginx_ingress_controller_requests", "at the edge, by service", **_INGRESS),
)  # fmt: skip
TOKEN_RATE = (
    _of(Signal.TOKEN_RATE, "vLLM", "vllm:generation_tokens_total", Kind.COUNTER, Unit.TOKENS_PER_S, "tokens written"),
    _of(Signal.TOKEN_RATE, "vLLM", "vllm:prompt_tokens_total", Kind.COUNTER, Unit.TOKENS_PER_S, "tokens read"),
    _of(
        Signal.TOKEN_RATE, "SGLang", "sglang:generation_tokens_total", Kind.COUNTER, Unit.TOKENS_PER_S, "tokens written"
    ),
)
LATENCY = (
    _latency("vLLM", "vllm:e2e_request_latency_seconds", "whole requests"),
    _latency("vLLM", "vllm:time_to_first_token_seconds", "until the first token"),
    _latency("Istio", "istio_request_duration_milliseconds", "as the receiver saw it", factor=0.001, **_DESTINATION),
    _latency("OpenTelemetry SDK", "http_server_request_duration_seconds", "HTTP conventions since 1.21"),
    _latency("client library", "http_request_duration_seconds", "the usual name"),
    _latency("KServe", "request_predict_seconds", "predictions of the Python model server"),
    _latency("ingress-nginx", "nginx_ingress_controller_request_duration_seconds", "at the edge", **_INGRESS),
    _of(Signal.LATENCY, "Triton", "nv_inference_request_duration_us", Kind.MEAN, Unit.SECONDS,
        "the mean: it keeps no histogram", per="nv_inference_request_success", factor=1e-6),
)  # fmt: skip
USAGE = (
    _of(Signal.CPU, _POD, "container_cpu_usage_seconds_total", Kind.COUNTER, Unit.CORES, "cores used by containers",
        matchers=_CONTAINERS),
    _of(Signal.CPU, "kubelet (resource)", "pod_cpu_usage_seconds_total", Kind.COUNTER, Unit.CORES,
        "cores used by pods, from /metrics/resource"),
    _of(Signal.MEMORY, _POD, "container_memory_working_set_bytes", Kind.GAUGE, Unit.BYTES,
        "what the kubelet evicts by", matchers=_CONTAINERS),
    _of(Signal.MEMORY, "kubelet (resource)", "pod_memory_working_set_bytes", Kind.GAUGE, Unit.BYTES,
        "the same, from /metrics/resource"),
)  # fmt: skip
GPU = (
    _of(Signal.GPU_UTILISATION, "dcgm-exporter", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", Kind.GAUGE, Unit.RATIO,
        "share of time the engine worked; right with MIG too", across="avg"),
    _of(Signal.GPU_UTILISATION, "dcgm-exporter", "DCGM_FI_DEV_GPU_UTIL", Kind.GAUGE, Unit.RATIO,
        "share of time any kernel ran: high long before a GPU is full; not with MIG", across="avg", factor=0.01),
    _of(Signal.GPU_UTILISATION, "dcgm-exporter", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", Kind.GAUGE, Unit.RATIO,
        "the first, scraped without honor_labels", across="avg", name="dcgm_fi_prof_gr_engine_active_exported",
        **_EXPORTED),
    _of(Signal.GPU_UTILISATION, "dcgm-exporter", "DCGM_FI_DEV_GPU_UTIL", Kind.GAUGE, Unit.RATIO,
        "the second, scraped without honor_labels", across="avg", factor=0.01, name="dcgm_fi_dev_gpu_util_exported",
        **_EXPORTED),
    _of(Signal.GPU_MEMORY, "dcgm-exporter", "DCGM_FI_DEV_FB_USED", Kind.GAUGE, Unit.BYTES, "framebuffer used, from MiB",
        factor=2.0**20),
    _of(Signal.GPU_MEMORY, "dcgm-exporter", "DCGM_FI_DEV_FB_USED", Kind.GAUGE, Unit.BYTES,
        "the same, scraped without honor_labels", factor=2.0**20, name="dcgm_fi_dev_fb_used_exported", **_EXPORTED),
)  # fmt: skip
QUEUE = (
    _of(Signal.QUEUE_WAITING, "vLLM", "vllm:num_requests_waiting", Kind.GAUGE, Unit.COUNT, "requests not begun"),
    _of(Signal.QUEUE_WAITING, "Triton", "nv_inference_pending_request_count", Kind.GAUGE, Unit.COUNT,
        "requests not begun"),
    _of(Signal.QUEUE_WAITING, "SGLang", "sglang:num_queue_reqs", Kind.GAUGE, Unit.COUNT, "requests not begun"),
    _of(Signal.QUEUE_WAITING, "TGI", "tgi_queue_size", Kind.GAUGE, Unit.COUNT, "requests not begun"),
    _of(Signal.QUEUE_RUNNING, "vLLM", "vllm:num_requests_running", Kind.GAUGE, Unit.COUNT, "requests being served"),
    _of(Signal.QUEUE_RUNNING, "SGLang", "sglang:num_running_reqs", Kind.GAUGE, Unit.COUNT, "requests being served"),
    _of(Signal.QUEUE_RUNNING, "KServe (Knative)", "queue_average_concurrent_requests", Kind.GAUGE, Unit.COUNT,
        "requests in a pod, by queue-proxy"),
    _of(Signal.QUEUE_TIME, "vLLM", "vllm:request_queue_time_seconds", Kind.HISTOGRAM, Unit.SECONDS,
        "waiting until begun"),
    _of(Signal.QUEUE_TIME, "Triton", "nv_inference_queue_duration_us", Kind.MEAN, Unit.SECONDS,
        "the mean: it keeps no histogram", per="nv_inference_request_success", factor=1e-6),
    _of(Signal.CACHE_USED, "vLLM", "vllm:kv_cache_usage_perc", Kind.GAUGE, Unit.RATIO, "KV cache, 1 is full (V1)",
        across="max"),
    _of(Signal.CACHE_USED, "vLLM", "vllm:gpu_cache_usage_perc", Kind.GAUGE, Unit.RATIO, "KV cache, 1 is full (V0)",
        across="max"),
    _of(Signal.CACHE_USED, "SGLang", "sglang:token_usage", Kind.GAUGE, Unit.RATIO, "KV cache, 1 is full", across="max"),
)  # fmt: skip
STATE = (
    _of(Signal.REPLICAS_READY, _KSM, "kube_deployment_status_replicas_ready", Kind.GAUGE, Unit.COUNT, "ready pods",
        workload="deployment", across="max", workload_kind="Deployment"),
    _of(Signal.REPLICAS_READY, _KSM, "kube_statefulset_status_replicas_ready", Kind.GAUGE, Unit.COUNT, "ready pods",
        workload="statefulset", across="max", workload_kind="StatefulSet"),
    _of(Signal.REPLICAS_WANTED, _KSM, "kube_deployment_spec_replicas", Kind.GAUGE, Unit.COUNT, "wanted pods",
        workload="deployment", across="max", workload_kind="Deployment"),
    _of(Signal.REPLICAS_WANTED, _KSM, "kube_statefulset_replicas", Kind.GAUGE, Unit.COUNT, "wanted pods",
        workload="statefulset", across="max", workload_kind="StatefulSet"),
    _of(Signal.REPLICAS_WANTED, _KSM, "kube_horizontalpodautoscaler_status_desired_replicas", Kind.GAUGE, Unit.COUNT,
        "what the HPA wants", workload="horizontalpodautoscaler", across="max"),
    _of(Signal.GPUS_WANTED, _KSM, "kube_pod_container_resource_requests", Kind.GAUGE, Unit.GPUS,
        "GPUs asked for by pods that exist, Pending ones too", matchers='resource="nvidia_com_gpu"',
        name="kube_pod_gpu_requests"),
    _of(Signal.RESTARTS, _KSM, "kube_pod_container_status_restarts_total", Kind.COUNTER, Unit.COUNT,
        "container restarts per second"),
)  # fmt: skip

TEMPLATES: tuple[Template, ...] = (*REQUEST_RATE, *TOKEN_RATE, *LATENCY, *USAGE, *GPU, *QUEUE, *STATE)
for _each in TEMPLATES:
    _each.query()


def templates_for(signal: Signal) -> tuple[Template, ...]:
    """All ways to read ``signal``, the preferred one first."""
    return tuple(each for each in TEMPLATES if each.signal is signal)


def template(name: str) -> Template:
    """The template of that name. Raises KeyError with the names there are."""
    found = {each.name: each for each in TEMPLATES}
    if name not in found:
        raise KeyError(f"no template is called {name!r}; there are {', '.join(sorted(found))}")
    return found[name]
