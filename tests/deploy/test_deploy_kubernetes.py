"""deploy/kubernetes: each overlay renders, is valid, is as closed as the restricted standard asks, and probes well."""

import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from forq_trio.app import FORCED_EXIT_SECONDS
from forq_trio.config.load import load
from forq_trio.config.settings import SETTINGS
from forq_trio.config.sources import read_environment
from forq_trio.model import limits
from support.needs import lacks
from support.real_server import SECRET

VERSIONS = ("1.29", "1.37")
"""Of Kubernetes: the first in which a volume may be for one pod alone (ReadWriteOncePod), and the last known here."""
OVERLAYS = ("sqlite", "postgres")
KUBECTL_MINOR_MIN = 27
"""The first with kustomize 5."""
Objects = dict[str, dict[str, Any]]


@cache
def renderer() -> list[str]:
    """The command that renders a folder. That of Debian 12 knows no components."""
    if (kubectl := shutil.which("kubectl")) is not None:
        command = [kubectl, "version", "--client", "--output=json"]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        if int(re.sub(r"\D", "", json.loads(said)["clientVersion"]["minor"])) >= KUBECTL_MINOR_MIN:
            return [kubectl, "kustomize"]
    if (kustomize := shutil.which("kustomize")) is not None:
        return [kustomize, "build"]
    lacks("deploy/kubernetes", f"kubectl 1.{KUBECTL_MINOR_MIN} or newer, or kustomize 5", installed=False)


def rendered(folder: Path) -> Objects:
    """The objects of a folder by their kinds; there is one of each."""
    command = [*renderer(), folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found = list(yaml.safe_load_all(done.stdout))
    objects = {each["kind"]: each for each in found}
    assert len(objects) == len(found)
    return objects


@pytest.fixture(scope="session")
def overlays(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Objects]:
    """Both overlays, and one of somebody's own that adds the monitoring."""
    folder = root / "deploy/kubernetes"
    found = {name: rendered(folder / name) for name in OVERLAYS}
    own = tmp_path_factory.mktemp("own")
    for name in OVERLAYS:
        (own / name).mkdir()
        places = {
            each: os.path.relpath(folder / each, (own / name).resolve()) for each in (name, "monitoring")
        }
        text = {"resources": [places[name]], "components": [places["monitoring"]]}
        (own / name / "kustomization.yaml").write_text(yaml.safe_dump(text), encoding="utf-8")
        found[f"{name} with monitoring"] = rendered(own / name)
    return found


@pytest.fixture(params=[*OVERLAYS, *(f"{name} with monitoring" for name in OVERLAYS)])
def objects(overlays: dict[str, Objects], request: pytest.FixtureRequest) -> Objects:
    return overlays[request.param]


def workload(objects: Objects) -> dict[str, Any]:
    (kind,) = objects.keys() & {"StatefulSet", "Deployment"}
    return objects[kind]


def pod(objects: Objects) -> dict[str, Any]:
    found: dict[str, Any] = workload(objects)["spec"]["template"]["spec"]
    return found


def container(objects: Objects) -> dict[str, Any]:
    (found,) = pod(objects)["containers"]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_they_are_valid(objects: Objects, version: str) -> None:
    for kind, each in objects.items():
        if kind != "ServiceMonitor":  # which Kubernetes does not know
            kubernetes_validate.validate(each, version, strict=True)


def test_what_is_not_valid_is_found(overlays: dict[str, Objects]) -> None:
    wrong = yaml.safe_load(yaml.safe_dump(overlays["sqlite"]["StatefulSet"]))
    wrong["spec"]["template"]["spec"]["containers"][0]["livenessProb"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_what_each_overlay_has(overlays: dict[str, Objects]) -> None:
    both = {"ServiceAccount", "Service", "NetworkPolicy"}
    assert overlays["sqlite"].keys() == both | {"StatefulSet"}
    assert overlays["postgres"].keys() == both | {"Deployment", "PodDisruptionBudget"}
    for name in OVERLAYS:
        assert overlays[f"{name} with monitoring"].keys() == overlays[name].keys() | {"ServiceMonitor"}


def test_all_of_them_mean_the_same_pods(objects: Objects) -> None:
    mine = {"app.kubernetes.io/name": "forq"}
    assert workload(objects)["spec"]["template"]["metadata"]["labels"] == mine
    assert workload(objects)["spec"]["selector"]["matchLabels"] == mine
    assert objects["Service"]["spec"]["selector"] == mine
    assert objects["Service"]["metadata"]["labels"] == mine
    assert objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == mine
    if "PodDisruptionBudget" in objects:
        assert objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == mine
        (spread,) = pod(objects)["topologySpreadConstraints"]
        assert spread["labelSelector"]["matchLabels"] == mine


def test_the_restricted_pod_security_standard(objects: Objects) -> None:
    """Its rules, of kubernetes.io/docs/concepts/security/pod-security-standards, and two of ours below."""
    of_pod, of_container = pod(objects)["securityContext"], container(objects)["securityContext"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod(objects).keys()
    assert "hostPort" not in str(container(objects)["ports"])
    assert all(
        {*volume} <= {"name", "emptyDir", "persistentVolumeClaim"} for volume in pod(objects)["volumes"]
    )
    assert of_container["allowPrivilegeEscalation"] is False
    assert of_pod["runAsNonRoot"] is True
    assert of_pod["runAsUser"] == 10_001
    assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert of_container["capabilities"] == {"drop": ["ALL"]}
    assert "privileged" not in of_container
    assert of_container["readOnlyRootFilesystem"] is True
    assert pod(objects)["automountServiceAccountToken"] is False


def test_the_user_is_that_of_the_image(objects: Objects, root: Path) -> None:
    context = pod(objects)["securityContext"]
    user = f"USER {context['runAsUser']}:{context['runAsGroup']}\n"
    assert user in (root / "Dockerfile").read_text(encoding="utf-8")
    assert context["fsGroup"] == context["runAsGroup"]


def test_the_probes_mean_what_they_say(objects: Objects) -> None:
    """A database that is away takes a server out of the Service; only one that never answers is started anew."""
    probes = {name: container(objects)[f"{name}Probe"] for name in ("startup", "readiness", "liveness")}
    paths = {name: probe["httpGet"]["path"] for name, probe in probes.items()}
    assert paths == {"startup": "/livez", "readiness": "/healthcheck", "liveness": "/livez"}
    assert {probe["httpGet"]["port"] for probe in probes.values()} == {"http"}
    assert probes["readiness"]["timeoutSeconds"] > limits.HEALTH_SECONDS_MAX
    startup = probes["startup"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 600


def test_it_has_the_time_to_stop(objects: Objects) -> None:
    hook = container(objects).get("lifecycle", {}).get("preStop", {"exec": {"command": ["sleep", "0"]}})
    slept = int(hook["exec"]["command"][1])
    assert pod(objects)["terminationGracePeriodSeconds"] > FORCED_EXIT_SECONDS + slept


def test_one_server_has_the_file_and_several_have_none(overlays: dict[str, Objects]) -> None:
    one = overlays["sqlite"]["StatefulSet"]["spec"]
    assert one["replicas"] == 1
    (claim,) = one["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
    mounts = {each["name"]: each["mountPath"] for each in container(overlays["sqlite"])["volumeMounts"]}
    assert mounts == {"data": "/var/lib/forq", "tmp": "/tmp"}
    assert overlays["sqlite"]["Service"]["spec"]["publishNotReadyAddresses"] is True
    several = overlays["postgres"]["Deployment"]["spec"]
    assert several["replicas"] > overlays["postgres"]["PodDisruptionBudget"]["spec"]["maxUnavailable"]
    assert several["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert {each["mountPath"] for each in container(overlays["postgres"])["volumeMounts"]} == {"/tmp"}
    assert "publishNotReadyAddresses" not in overlays["postgres"]["Service"]["spec"]


def test_every_variable_is_a_setting_and_every_secret_a_reference(objects: Objects) -> None:
    env = {each["name"]: each for each in container(objects)["env"]}
    secrets = {setting.variable for setting in SETTINGS.values() if setting.secret}
    for name, each in env.items():
        reference = each.get("valueFrom", {}).get("secretKeyRef")
        assert (reference is not None) is (name in secrets), name
        assert reference is None or reference["name"] == "forq"
    values = {name: each["value"] for name, each in env.items() if "value" in each}
    texts = {name: "postgresql://q@db/q" if "URL" in name else SECRET for name in env.keys() & secrets}
    assert read_environment(values | texts).warnings == []
    load(environ=values | texts)


def test_ports_have_the_names_that_others_use(objects: Objects) -> None:
    ports = {each["name"]: each["containerPort"] for each in container(objects)["ports"]}
    assert ports == {"http": 8080, "ui": 8081}
    assert {each["targetPort"] for each in objects["Service"]["spec"]["ports"]} == ports.keys()
    named = [port["port"] for each in objects["NetworkPolicy"]["spec"]["ingress"] for port in each["ports"]]
    assert {*named} == ports.keys()


def test_who_may_reach_whom(overlays: dict[str, Objects]) -> None:
    for name in OVERLAYS:
        policy = overlays[name]["NetworkPolicy"]["spec"]
        assert {*policy["policyTypes"]} == {"Ingress", "Egress"}
        out = {port["port"] for each in policy.get("egress", []) for port in each["ports"]}
        assert out == ({53, 5432} if name == "postgres" else set())
        watched = overlays[f"{name} with monitoring"]["NetworkPolicy"]["spec"]
        assert watched["ingress"][:-1] == policy["ingress"]
        assert "monitoring" in str(watched["ingress"][-1])


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_service_monitor(overlays: dict[str, Objects], name: str) -> None:
    """By hand: no schema of Kubernetes has it. Fields are those of monitoring.coreos.com/v1."""
    objects = overlays[f"{name} with monitoring"]
    monitor = objects["ServiceMonitor"]
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    assert monitor["spec"].keys() == {"jobLabel", "selector", "endpoints"}
    labels = objects["Service"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert monitor["spec"]["jobLabel"] in labels
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint.keys() == {"port", "path", "authorization"}
    assert endpoint["port"] in {each["name"] for each in objects["Service"]["spec"]["ports"]}
    assert endpoint["path"] == "/metrics"
    env = {each["name"]: each for each in container(objects)["env"]}
    assert env["FORQ_METRICS_ENABLED"]["value"] == "true"
    reference = env["FORQ_METRICS_AUTH_SECRET"]["valueFrom"]["secretKeyRef"]
    assert endpoint["authorization"] == {"type": "Bearer", "credentials": reference}


def test_the_overlays_of_the_page(root: Path, tmp_path: Path) -> None:
    """In a copy of the folder, beside which it stands."""
    page = (root / "docs/kubernetes.md").read_text(encoding="utf-8")
    own, monitoring = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    shutil.copytree(root / "deploy", tmp_path / "deploy")
    (tmp_path / "my-queue").mkdir()
    (tmp_path / "my-queue/kustomization.yaml").write_text(own + monitoring, encoding="utf-8")
    objects = rendered(tmp_path / "my-queue")
    assert container(objects)["image"] == "registry.example.org/forq-trio:1.2.3"
    assert {each["metadata"]["namespace"] for each in objects.values()} == {"queue"}
    assert "ServiceMonitor" in objects
