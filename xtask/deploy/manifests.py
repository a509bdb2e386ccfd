"""Checks manifests for Kubernetes: by its schemas, which take no unknown field, and by each other.

Usage: manifests.py FOLDER
"""

import copy
import sys
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

# The first version has what the manifests use.
VERSIONS = ["1.31", "1.37"]

NAME = {"type": "string", "minLength": 1, "maxLength": 253}
PORT = {
    "type": "object",
    "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 65535}},
    "required": ["number"],
    "additionalProperties": False,
}

# `inference.networking.k8s.io/v1` of the Gateway API Inference Extension, as its reference describes it.
INFERENCE_POOL = {
    "type": "object",
    "properties": {
        "apiVersion": {"const": "inference.networking.k8s.io/v1"},
        "kind": {"const": "InferencePool"},
        "metadata": {"type": "object", "properties": {"name": NAME}, "required": ["name"]},
        "spec": {
            "type": "object",
            "properties": {
                "appProtocol": {"enum": ["http", "kubernetes.io/h2c"]},
                "selector": {
                    "type": "object",
                    "properties": {
                        "matchLabels": {
                            "type": "object",
                            "minProperties": 1,
                            "maxProperties": 64,
                            "additionalProperties": {"type": "string", "maxLength": 63},
                        }
                    },
                    "required": ["matchLabels"],
                    "additionalProperties": False,
                },
                "targetPorts": {"type": "array", "items": PORT, "minItems": 1, "maxItems": 8},
                "endpointPickerRef": {
                    "type": "object",
                    "properties": {
                        "group": {"type": "string", "maxLength": 253},
                        "kind": {"type": "string", "minLength": 1, "maxLength": 63},
                        "name": NAME,
                        "port": PORT,
                        "failureMode": {"enum": ["FailOpen", "FailClose"]},
                    },
                    "required": ["name", "port"],
                    "additionalProperties": False,
                },
            },
            "required": ["selector", "targetPorts", "endpointPickerRef"],
            "additionalProperties": False,
        },
    },
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
}


def fault(manifest: dict) -> str | None:
    """What is wrong with a manifest by its schema."""
    try:
        if manifest.get("kind") == "InferencePool":
            jsonschema.validate(manifest, INFERENCE_POOL)
        else:
            for version in VERSIONS:
                kubernetes_validate.validate(manifest, version, strict=True)
    except (jsonschema.ValidationError, kubernetes_validate.ValidationError) as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError as error:
        return f"there is no {error.api_version} {error.kind} in {error.version}"
    return None


def broken(manifest: dict) -> list[dict]:
    """The manifest with a field that nobody knows, another kind, and without its longest field."""
    changed = [copy.deepcopy(manifest) for _ in range(3)]
    body = "spec" if "spec" in manifest else "data"
    changed[0]["spek"] = manifest[body]
    changed[1]["kind"] = "Setun"
    changed[2][body] = "setun"
    if body == "spec":
        changed.append(copy.deepcopy(manifest))
        changed[3]["spec"]["replikas"] = 3
    return changed


def template(manifest: dict) -> dict:
    return manifest.get("spec", {}).get("template", {})


def links(manifests: list[dict]) -> list[str]:
    """Names that no other manifest has."""
    pods = [template(manifest) for manifest in manifests if template(manifest)]
    names = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests}
    missing = []

    def expect(found: bool, manifest: dict, what: object) -> None:
        if not found:
            missing.append(f"{manifest['kind']} {manifest['metadata']['name']}: {what} is nowhere")

    for manifest in manifests:
        spec = manifest.get("spec", {})
        selector = spec.get("selector", {})
        labels = selector.get("matchLabels", selector)
        chosen = [pod for pod in pods if labels.items() <= pod["metadata"].get("labels", {}).items()]
        expect(not labels or len(chosen) == 1, manifest, f"one pod with {labels}")
        containers = [container for pod in chosen for container in pod["spec"]["containers"]]
        ports = [port for container in containers for port in container.get("ports", [])]
        for port in spec.get("ports", []):
            expect(port["targetPort"] in [other["name"] for other in ports], manifest, port)
        for port in spec.get("targetPorts", []):
            expect(port["number"] in [other["containerPort"] for other in ports], manifest, port)
        if target := spec.get("scaleTargetRef"):
            expect((target["kind"], target["name"]) in names, manifest, target)
        if service := spec.get("serviceName"):
            expect(("Service", service) in names, manifest, service)
        for volume in template(manifest).get("spec", {}).get("volumes", []):
            if claim := volume.get("persistentVolumeClaim"):
                name = ("PersistentVolumeClaim", claim["claimName"])
                expect(name in names and claim.get("readOnly"), manifest, f"{claim}, read-only,")
    return missing


def main() -> None:
    folder = Path(sys.argv[1])
    manifests, failed = [], 0
    for path in sorted(folder.glob("*.yaml")):
        for manifest in yaml.safe_load_all(path.read_text()):
            manifests.append(manifest)
            if found := fault(manifest):
                print(f"{path.name}, {manifest.get('kind')}: {found}")
                failed += 1
            for changed in broken(manifest):
                assert fault(changed), f"{path.name}: {changed} is taken"
    missing = links(manifests)
    print("\n".join(missing))
    assert len(manifests) > 10, f"{len(manifests)} manifests in {folder}"
    if failed or missing:
        sys.exit(f"manifests.py: {failed} of {len(manifests)} manifests have a fault")
    print(f"manifests.py: {len(manifests)} manifests\n# pass {len(manifests)}", flush=True)


if __name__ == "__main__":
    main()
