"""A running cluster + stage times → KWOK beside it: nodes become Ready, pods run, leases are renewed."""

from leadtime.testing.cluster.cluster import Cluster
from leadtime.testing.cluster.part import Part, free_port, http_ready
from leadtime.testing.cluster.stages import StageTimes, stages
from leadtime.testing.control_plane.go_module import Report, silent
from leadtime.testing.control_plane.programs import find


def start_kwok(cluster: Cluster, times: StageTimes | None = None, *, report: Report = silent) -> Part:
    """Start KWOK for every node of the cluster; it ends with the cluster.

    Raises NotInstallable where it can neither be found nor built, PartFailed where it does not start.
    """
    program = find(["kwok"], report=report)["kwok"]
    configuration = cluster.folder / "stages.yaml"
    configuration.write_text(stages(times or StageTimes()), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    return cluster.add(
        Part(
            name="kwok",
            command=(
                str(program),
                f"--kubeconfig={cluster.kubeconfig('admin')}",
                f"--config={configuration}",
                f"--server-address={address}",
                "--manage-all-nodes=true",
                "--node-ip=127.0.0.1",
                "--node-lease-duration-seconds=40",
            ),
            log=cluster.folder / "kwok.log",
            ready=http_ready(f"http://{address}/healthz"),
        )
    )
