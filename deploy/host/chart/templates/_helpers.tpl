{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* The admission policies name this namespace's ServiceAccounts, so it cannot be chosen. */}}
{{- define "ovn-uplink.namespace" -}}ovn-uplink{{- end }}

{{/* What selects the pods of a component: (component). It must never change. */}}
{{- define "ovn-uplink.selector" -}}
app.kubernetes.io/name: ovn-uplink
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* Labels of an object: (list $ component). */}}
{{- define "ovn-uplink.labels" -}}
{{- $ := index . 0 -}}
{{ include "ovn-uplink.selector" (index . 1) }}
app.kubernetes.io/instance: {{ $.Release.Name }}
app.kubernetes.io/version: {{ $.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The reference of an image: (list $ image). A registry is what has a dot or a colon, or is localhost, before the first slash. */}}
{{- define "ovn-uplink.image" -}}
{{- $ := index . 0 -}}
{{- $image := index . 1 -}}
{{- $repository := $image.repository -}}
{{- with $.Values.global.imageRegistry -}}
{{- $parts := splitList "/" $repository -}}
{{- if and (gt (len $parts) 1) (regexMatch "^localhost$|[.:]" (first $parts)) -}}
{{- $parts = rest $parts -}}
{{- end -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) (join "/" $parts) -}}
{{- end -}}
{{- if not (or $.Values.image.tag $image.digest) -}}
{{- fail (printf "no tag for the image %s: set image.tag to the first 12 characters of the commit that the images were built from (--set image.tag=...), or install the chart that `make chart` writes, which has it" $repository) -}}
{{- end -}}
{{- $repository -}}
{{- with $.Values.image.tag }}:{{ . }}{{ end -}}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end }}

{{/* What every pod has besides its container: (list $ values-of-the-component account). */}}
{{- define "ovn-uplink.pod" -}}
{{- $ := index . 0 -}}
{{- $values := index . 1 -}}
serviceAccountName: {{ index . 2 }}
# The ServiceAccounts themselves mount none.
automountServiceAccountToken: true
enableServiceLinks: false
terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
nodeSelector: {{- toYaml (merge (dict "kubernetes.io/os" "linux") $values.nodeSelector) | nindent 2 }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What every container has: (list $ values-of-the-component image). */}}
{{- define "ovn-uplink.container" -}}
{{- $ := index . 0 -}}
image: {{ include "ovn-uplink.image" (list $ (index . 2)) | quote }}
imagePullPolicy: {{ $.Values.image.pullPolicy }}
terminationMessagePolicy: FallbackToLogsOnError
resources: {{- toYaml (index . 1).resources | nindent 2 }}
{{- end }}

{{/* The flags that all agents have. */}}
{{- define "ovn-uplink.args" -}}
- --log-level={{ .Values.logging.level }}
- --log-format={{ .Values.logging.format }}
- --settle={{ .Values.settle }}
{{- end }}

{{/* Where the API server is, if that is not for the kubelet to say. */}}
{{- define "ovn-uplink.apiServerEnv" -}}
{{- with .Values.k8sAPIServer -}}
{{- $host := (urlParse .).host -}}
{{- $port := regexFind ":[0-9]+$" $host -}}
- name: KUBERNETES_SERVICE_HOST
  value: {{ trimSuffix $port $host | trimAll "[]" | quote }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ trimPrefix ":" $port | default "443" | quote }}
{{- end -}}
{{- end }}

{{/*
Health of an agent on the host's network: (list $ port). By default it listens on the loopback interface alone, where the
kubelet, but nobody else, reaches it.
*/}}
{{- define "ovn-uplink.hostHealthArg" -}}
{{- $ := index . 0 -}}
- --health-address={{ ternary "[$(HOST_IP)]" "127.0.0.1" $.Values.metrics.enabled }}:{{ index . 1 }}
{{- end }}

{{- define "ovn-uplink.hostIPEnv" -}}
{{- if .Values.metrics.enabled -}}
- name: HOST_IP
  valueFrom: {fieldRef: {fieldPath: status.hostIP}}
{{- end -}}
{{- end }}

{{/* Ports and probes: (list port host), host is empty for the pod's own address. */}}
{{- define "ovn-uplink.probes" -}}
{{- $port := index . 0 -}}
{{- $host := index . 1 -}}
ports:
- {name: metrics, containerPort: {{ $port }}, protocol: TCP}
{{- range $probe, $path := dict "startupProbe" "/healthz" "livenessProbe" "/healthz" "readinessProbe" "/readyz" }}
{{ $probe }}:
  httpGet: {path: {{ $path }}, port: {{ $port }}, scheme: HTTP{{ with $host }}, host: {{ . }}{{ end }}}
  timeoutSeconds: 5
  periodSeconds: {{ eq $probe "startupProbe" | ternary 2 10 }}
  failureThreshold: {{ eq $probe "startupProbe" | ternary 30 3 }}
{{- end }}
{{- end }}

{{/* Subnets of the form that OVN-Kubernetes takes, 10.244.0.0/16/24, without what is behind the second slash. */}}
{{- define "ovn-uplink.podSubnets" -}}
{{- $subnets := list -}}
{{- range splitList "," .Values.podNetwork -}}
{{- with trim . -}}
{{- $subnets = append $subnets (slice (splitList "/" .) 0 2 | join "/") -}}
{{- end -}}
{{- end -}}
{{- join "," $subnets -}}
{{- end }}

{{/* Flags of the gateways on regular nodes. */}}
{{- define "ovn-uplink.gatewayArgs" -}}
{{- with .Values.gateway -}}
{{- $bypass := concat (compact (list (include "ovn-uplink.podSubnets" $))) .bypassCIDRs | join "," -}}
{{- $flags := dict
  "gateway" .enabled "default-gateway-bridge" .defaultGatewayBridge "bypass-cidrs" $bypass
  "service-cidrs" ($.Values.serviceNetwork | nospace)
  "transit-subnets" (join "," .transitSubnets) "link-subnets" (join "," .linkSubnets)
  "service-snat-subnets" (join "," .serviceSNATSubnets) "ct-zones" .ctZones
  "endpoint-source" .endpointSource "deletion-grace" .deletionGrace
  "vrf-table-range" .vrfTableRange "import-grace" .importGrace "sysctl-root" (ternary "/host/proc/sys/net" "" .enabled) -}}
{{- if $.Values.dynamicUDN.enabled -}}
{{- $_ := set $flags "dynamic-udn" true -}}
{{- $_ := set $flags "inactive-grace" $.Values.dynamicUDN.inactiveGrace -}}
{{- end -}}
{{- range $flag, $value := $flags -}}
{{- if ne (toString $value) "" }}
- --{{ $flag }}={{ $value }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Affinity to the hosts with a DPU, or to all other nodes: (list $ isDPUHost). */}}
{{- define "ovn-uplink.affinity" -}}
{{- $label := splitn "=" 2 (index . 0).Values.dpuHostLabel -}}
{{- $is := index . 1 -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
    - matchExpressions:
      {{- if contains "=" (index . 0).Values.dpuHostLabel }}
      - {key: {{ $label._0 }}, operator: {{ ternary "In" "NotIn" $is }}, values: [{{ $label._1 | quote }}]}
      {{- else }}
      - {key: {{ $label._0 }}, operator: {{ ternary "Exists" "DoesNotExist" $is }}}
      {{- end }}
{{- end }}
