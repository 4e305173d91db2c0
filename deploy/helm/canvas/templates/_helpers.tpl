{{- define "canvas.image" -}}
{{ required "set image.repository to the registry and path of the four images, such as registry.example.com/canvas" .root.Values.image.repository }}/{{ .name }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- with get (.root.Values.image.digests | default dict) .name }}@{{ . }}{{ end }}
{{- end }}

{{- define "canvas.publicUrl" -}}
{{ required "set publicUrl to the URL under which clients reach the gateway, such as https://canvas.example.com" .Values.publicUrl }}
{{- end }}

{{- define "canvas.blobUrl" -}}
{{ required "set blobs.url to the object store: s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, or file:// with blobs.volumeClaim" .Values.blobs.url }}
{{- end }}

{{- define "canvas.host" -}}
{{ (urlParse (include "canvas.publicUrl" .)).hostname }}
{{- end }}

{{/* Labels by which selectors find the pods of a process. */}}
{{- define "canvas.selector" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "canvas.labels" -}}
{{ include "canvas.selector" . }}
{{ include "canvas.common" .root }}
{{- end }}

{{- define "canvas.common" -}}
app.kubernetes.io/part-of: canvas
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Rules of egress to a list of addresses. */}}
{{- define "canvas.addresses" -}}
{{- range . }}
- to: [{ ipBlock: { cidr: {{ .cidr }} } }]
  ports: [{ port: {{ .port }}, protocol: TCP }]
{{- end }}
{{- end }}

{{/* The secrets of a workload, as a JSON list: the name of the volume, secret and key, the variable whose _FILE names the file. Each workload
     gets those that it uses: database and key ring, that of the installation key where the program is the gateway's, and the URLs of the
     services of which it is a client. The migration connects to the database as its owner, and a process with its own role, if there are
     roles. */}}
{{- define "canvas.secrets" -}}
{{- $given := .root.Values.secrets }}
{{- $database := $given.database }}
{{- $passwords := list }}
{{- with $given.databaseRoles.name }}
{{- if eq $.name "migrate" }}
{{- $passwords = list (list "database-passwords" (dict "name" . "key" "passwords") "CANVAS_DATABASE_PASSWORDS") }}
{{- else }}
{{- $database = dict "name" . "key" $.name }}
{{- end }}
{{- end }}
{{- $secrets := list (list "database" $database "CANVAS_DATABASE_URL") (list "master-keys" $given.masterKeys "CANVAS_MASTER_KEYS") }}
{{- $secrets = concat $secrets $passwords }}
{{- if eq .image "gateway" }}
{{- $secrets = append $secrets (list "installation-keys" $given.installationKeys "CANVAS_INSTALLATION_KEYS") }}
{{- end }}
{{- if has "broker" .clients }}
{{- $secrets = append $secrets (list "broker" $given.broker "CANVAS_AMQP_URL") }}
{{- end }}
{{- if has "cache" .clients }}
{{- $secrets = append $secrets (list "cache" $given.cache "CANVAS_REDIS_URL") }}
{{- end }}
{{- toJson $secrets }}
{{- end }}

{{/* Settings of the four processes. The migration has none. */}}
{{- define "canvas.settings" -}}
CANVAS_LISTEN: 0.0.0.0:8080
CANVAS_ADMIN_LISTEN: 0.0.0.0:9090
CANVAS_PUBLIC_URL: {{ include "canvas.publicUrl" . | quote }}
CANVAS_BLOB_URL: {{ include "canvas.blobUrl" . | quote }}
{{- range $name, $value := .Values.settings }}
{{- /* A number of a values file is a float, which `quote` alone writes with an exponent. */}}
{{ $name }}: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}
{{- end }}
{{- end }}

{{/* Labels of PostgreSQL, RabbitMQ and Redis. They are no part of `canvas`, so that commands for its processes leave them alone. */}}
{{- define "canvas.serviceLabels" -}}
{{ include "canvas.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* Where the pods of a workload run: its own values, or those of all workloads. */}}
{{- define "canvas.placement" -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" }}
{{- with get $.values $key | default (get $.root.Values $key) }}
{{ $key }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* The parts of a pod of PostgreSQL, RabbitMQ or Redis. */}}
{{- define "canvas.servicePod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- include "canvas.placement" . }}
securityContext:
  runAsNonRoot: true
  runAsUser: 999
  runAsGroup: 999
  fsGroup: 999
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{/* A change of these restarts the pods that have them. */}}
{{- define "canvas.annotations" -}}
{{- if ne .name "migrate" }}
checksum/settings: {{ list (include "canvas.settings" .root) (toJson .root.Values.modelCatalogue) | join "" | sha256sum }}
{{- end }}
{{- with merge dict .values.podAnnotations .root.Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The files of a workload beside its secrets, as a JSON list of volumes, each with the directory in which it is mounted. */}}
{{- define "canvas.files" -}}
{{- $files := list }}
{{- $blobs := .root.Values.blobs }}
{{- if and .blobs $blobs.credentialsSecret (hasPrefix "gs://" $blobs.url) }}
{{- $secret := dict "secretName" $blobs.credentialsSecret "defaultMode" 0440 "items" (list (dict "key" "key.json" "path" "key.json")) }}
{{- $files = append $files (dict "volume" (dict "name" "gcs" "secret" $secret) "at" "/run/canvas/gcs") }}
{{- end }}
{{- if and .blobs .root.Values.modelCatalogue }}
{{- $map := dict "name" (printf "%s-models" .root.Release.Name) }}
{{- $files = append $files (dict "volume" (dict "name" "models" "configMap" $map) "at" "/run/canvas/models") }}
{{- end }}
{{- $ca := .root.Values.certificateAuthority }}
{{- $item := list (dict "key" $ca.key "path" "ca.pem") }}
{{- if $ca.secret }}
{{- $secret := dict "secretName" $ca.secret "defaultMode" 0440 "items" $item }}
{{- $files = append $files (dict "volume" (dict "name" "ca" "secret" $secret) "at" "/run/canvas/ca") }}
{{- else if $ca.configMap }}
{{- $files = append $files (dict "volume" (dict "name" "ca" "configMap" (dict "name" $ca.configMap "items" $item)) "at" "/run/canvas/ca") }}
{{- end }}
{{- toJson $files }}
{{- end }}

{{/* The parts of a pod that every workload has: the default security context is that of the restricted profile of the pod security standards.
     No process uses the Kubernetes API, so none gets a token for it. */}}
{{- define "canvas.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- include "canvas.placement" . }}
securityContext: {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
volumes:
  {{- range include "canvas.secrets" . | fromJsonArray }}
  {{- $secret := index . 1 }}
  - name: {{ index . 0 }}
    secret:
      secretName: {{ $secret.name }}
      defaultMode: 0440
      items: [{ key: {{ $secret.key }}, path: value }]
  {{- end }}
  {{- range include "canvas.files" . | fromJsonArray }}
  - {{- toYaml .volume | nindent 4 }}
  {{- end }}
  {{- if and .blobs .root.Values.blobs.volumeClaim }}
  - name: blobs
    persistentVolumeClaim: { claimName: {{ .root.Values.blobs.volumeClaim }} }
  {{- end }}
  {{- with concat .root.Values.extraVolumes .values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The parts of a container that every workload has. */}}
{{- define "canvas.container" -}}
name: process
image: {{ include "canvas.image" (dict "root" .root "name" .image) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext: {{- toYaml .root.Values.securityContext | nindent 2 }}
{{- if ne .name "migrate" }}
envFrom:
  - configMapRef: { name: {{ .root.Release.Name }}-settings }
{{- end }}
volumeMounts:
  {{- range include "canvas.secrets" . | fromJsonArray }}
  - { name: {{ index . 0 }}, mountPath: /run/canvas/{{ index . 0 }}, readOnly: true }
  {{- end }}
  {{- $mounted := list }}
  {{- range include "canvas.files" . | fromJsonArray }}
  {{- $mounted = append $mounted .volume.name }}
  - { name: {{ .volume.name }}, mountPath: {{ .at }}, readOnly: true }
  {{- end }}
  {{- if and .blobs .root.Values.blobs.volumeClaim }}
  - { name: blobs, mountPath: /var/lib/canvas/blobs }
  {{- end }}
  {{- with concat .root.Values.extraVolumeMounts .values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
resources: {{- toYaml .values.resources | nindent 2 }}
env:
  {{- range include "canvas.secrets" . | fromJsonArray }}
  - { name: {{ index . 2 }}_FILE, value: /run/canvas/{{ index . 0 }}/value }
  {{- end }}
  {{- if has "ca" $mounted }}
  # The certificates in both places are trusted.
  - { name: SSL_CERT_FILE, value: /etc/ssl/certs/ca-certificates.crt }
  - { name: SSL_CERT_DIR, value: /run/canvas/ca }
  {{- end }}
  {{- if has "models" $mounted }}
  - { name: CANVAS_MODEL_CATALOGUE, value: /run/canvas/models/models.json }
  {{- end }}
  {{- if has "gcs" $mounted }}
  - { name: GOOGLE_APPLICATION_CREDENTIALS, value: /run/canvas/gcs/key.json }
  {{- end }}
  {{- if .values.memoryMiB }}
  - { name: CANVAS_IMAGE_MEMORY_MIB, value: {{ .values.memoryMiB | quote }} }
  - { name: CANVAS_GENERATION_MEMORY_MIB, value: {{ .values.generationMemoryMiB | quote }} }
  {{- end }}
  {{- if .blobs }}
  {{- with .root.Values.blobs.credentialsSecret }}
  {{- if hasPrefix "s3://" $.root.Values.blobs.url }}
  - { name: AWS_ACCESS_KEY_ID, valueFrom: { secretKeyRef: { name: {{ . }}, key: ACCESS_KEY_ID } } }
  - { name: AWS_SECRET_ACCESS_KEY, valueFrom: { secretKeyRef: { name: {{ . }}, key: SECRET_ACCESS_KEY } } }
  {{- else if hasPrefix "az://" $.root.Values.blobs.url }}
  - { name: AZURE_STORAGE_ACCOUNT_KEY, valueFrom: { secretKeyRef: { name: {{ . }}, key: ACCOUNT_KEY } } }
  {{- end }}
  {{- end }}
  {{- end }}
  {{- with concat .root.Values.extraEnv .values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* ServiceAccount, Deployment and PodDisruptionBudget of a process. */}}
{{- define "canvas.process" -}}
{{- $selector := include "canvas.selector" . -}}
{{- $fullname := printf "%s-%s" .root.Release.Name .name -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $fullname }}
  labels: {{- include "canvas.labels" . | nindent 4 }}
  {{- with .values.serviceAccountAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $fullname }}
  labels: {{- include "canvas.labels" . | nindent 4 }}
spec:
  {{- if ne (toString .values.replicas) "<nil>" }}
  {{- if .scaled }}
  {{- fail (printf "unset %s.replicas, or switch off what scales it: an autoscaler and a fixed number of replicas work against each other" .key) }}
  {{- end }}
  replicas: {{ .values.replicas }}
  {{- else }}
  # Without `replicas`, so that an upgrade keeps the number that an autoscaler or an operator set.
  {{- end }}
  selector:
    matchLabels: {{- $selector | nindent 6 }}
  revisionHistoryLimit: 3
  strategy:
    # A new pod is ready before an old one stops, so that every request is served.
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 }
  template:
    metadata:
      labels:
        {{- include "canvas.labels" . | nindent 8 }}
        {{- range .clients }}
        canvas/{{ . }}: client
        {{- end }}
        {{- with merge dict .values.podLabels .root.Values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations: {{- include "canvas.annotations" . | trim | nindent 8 }}
    spec:
      {{- include "canvas.pod" . | nindent 6 }}
      serviceAccountName: {{ $fullname }}
      terminationGracePeriodSeconds: {{ .grace }}
      topologySpreadConstraints:
        - topologyKey: kubernetes.io/hostname
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- $selector | nindent 14 }}
        {{- if .root.Values.spreadZones }}
        - topologyKey: topology.kubernetes.io/zone
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: { app.kubernetes.io/part-of: canvas, app.kubernetes.io/instance: {{ .root.Release.Name }} }
          # Counts only pods of the same Deployment and version.
          matchLabelKeys: [app.kubernetes.io/name, pod-template-hash]
        {{- end }}
      containers:
        - {{- include "canvas.container" . | nindent 10 }}
          {{- with .args }}
          args: {{ toJson . }}
          {{- end }}
          ports:
            - { name: admin, containerPort: 9090, protocol: TCP }
            {{- if eq .name "gateway" }}
            - { name: http, containerPort: 8080, protocol: TCP }
          lifecycle:
            # After SIGTERM the gateway accepts connections for another half second. Kubernetes removes the endpoint at the same time as
            # it sends SIGTERM, and load balancers learn of it later. Until then the gateway continues to serve.
            preStop: { sleep: { seconds: 10 } }
            {{- end }}
          # A process that waits for the database, the schema or the broker is alive but not ready, and /readyz reports what is missing.
          # Only a process that does not respond at all is restarted.
          startupProbe: { httpGet: { path: /healthz, port: admin }, periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 60 }
          livenessProbe: { httpGet: { path: /healthz, port: admin }, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 }
          readinessProbe: { httpGet: { path: /readyz, port: admin }, periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 2 }
---
# A node can be drained at any time, one pod of each kind after the other. minAvailable would block the drain of a node forever when there is
# only one replica. A pod that is not ready can always be evicted: during an outage of the database no pod is ready, and nodes must still
# drain.
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $fullname }}
  labels: {{- include "canvas.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- $selector | nindent 6 }}
{{- end }}

{{- /* All public addresses, for policies. */}}
{{- define "canvas.publicAddresses" -}}
- ipBlock:
    cidr: 0.0.0.0/0
    except:
      - 0.0.0.0/8
      - 10.0.0.0/8
      - 100.64.0.0/10
      - 127.0.0.0/8
      - 168.63.129.16/32
      - 169.254.0.0/16
      - 172.16.0.0/12
      - 192.0.0.0/24
      - 192.0.2.0/24
      - 192.31.196.0/24
      - 192.52.193.0/24
      - 192.88.99.0/24
      - 192.168.0.0/16
      - 192.175.48.0/24
      - 198.18.0.0/15
      - 198.51.100.0/24
      - 203.0.113.0/24
      - 224.0.0.0/4
      - 240.0.0.0/4
- ipBlock:
    cidr: 2000::/3
    except:
      - 2001::/23
      - 2001:db8::/32
      - 2002::/16
      - 3fff::/20
{{- end }}
