"""JSON schemas of the custom resources in deploy/, restricted to the fields used there: kubernetes-validate has none for them."""

TEXT = {"type": "string", "minLength": 1}
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
LABELS = {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}, "minProperties": 1}


def fields(required: dict, optional: dict | None = None) -> dict:
    return {"type": "object", "properties": required | (optional or {}), "required": list(required), "additionalProperties": False}


def some(items: dict, most: int = 16) -> dict:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most}


def resource(version: str, kind: str, spec: dict) -> dict:
    metadata = fields({"name": TEXT}, {"labels": LABELS})
    return fields({"apiVersion": {"const": version}, "kind": {"const": kind}, "metadata": metadata, "spec": spec})


SELECTOR = fields({"matchLabels": LABELS})
SCALING = fields({"stabilizationWindowSeconds": {"type": "integer", "minimum": 0, "maximum": 3600}, "policies": some(fields(
    {"type": {"enum": ["Pods", "Percent"]}, "value": {"type": "integer", "minimum": 1}, "periodSeconds": {"type": "integer", "maximum": 1800}}))})

SCHEMAS = {
    "PodMonitor": resource("monitoring.coreos.com/v1", "PodMonitor", fields({
        "selector": SELECTOR,
        "podMetricsEndpoints": some(fields({"port": TEXT}, {"path": TEXT, "interval": {"type": "string", "pattern": "^[0-9]+(s|m)$"}, "authorization": fields(
            {"type": TEXT, "credentials": fields({"name": TEXT, "key": TEXT})})}))})),
    "ScaledObject": resource("keda.sh/v1alpha1", "ScaledObject", fields({
        "scaleTargetRef": fields({"name": TEXT}, {"apiVersion": TEXT, "kind": TEXT}),
        "triggers": some(fields({"type": {"const": "prometheus"}, "metadata": fields({"serverAddress": TEXT, "query": TEXT, "threshold": {
            "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"}})}, {"metricType": {"enum": ["AverageValue", "Value"]}}))},
        {"minReplicaCount": {"type": "integer", "minimum": 0}, "maxReplicaCount": {"type": "integer", "minimum": 1},
         "pollingInterval": {"type": "integer", "minimum": 1},
         "advanced": fields({"horizontalPodAutoscalerConfig": fields({"behavior": fields({}, {"scaleUp": SCALING, "scaleDown": SCALING})})})})),
    "InferencePool": resource("inference.networking.k8s.io/v1", "InferencePool", fields({
        "selector": SELECTOR,
        "targetPorts": some(fields({"number": PORT}), most=8),
        "endpointPickerRef": fields({"name": TEXT, "port": fields({"number": PORT})}, {
            "group": {"type": "string"}, "kind": TEXT, "failureMode": {"enum": ["FailOpen", "FailClose"]}})})),
    "HTTPRoute": resource("gateway.networking.k8s.io/v1", "HTTPRoute", fields({
        "parentRefs": some(fields({"name": TEXT}, {"group": TEXT, "kind": TEXT, "namespace": TEXT})),
        "rules": some(fields({"backendRefs": some(fields({"name": TEXT}, {"group": TEXT, "kind": TEXT, "port": PORT}))}, {
            "matches": some(fields({"path": fields({"type": {"enum": ["Exact", "PathPrefix", "RegularExpression"]}, "value": TEXT})})),
            "timeouts": fields({}, {"request": {"type": "string", "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$"}})}))})),
}
