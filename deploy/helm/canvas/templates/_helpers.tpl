{{- define "canvas.image" -}}
{{ .root.Values.image.repository }}/{{ .name }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- with get (.root.Values.image.digests | default dict) .name }}@{{ . }}{{ end }}
{{- end }}

{{- define "canvas.host" -}}
{{ (urlParse .Values.publicUrl).hostname }}
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

{{/* The secrets of a workload that are mounted, as a JSON list: the name of the volume, secret and key, the variable. Each workload gets those
     that it uses: database and key ring, that of the installation key where the program is the gateway's, and the URLs of external services of
     which it is a client. The migration connects to the database as its owner, and a process with its own role, if there are roles. */}}
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
{{- if and (has "broker" .clients) (eq .root.Values.rabbitmq.mode "external") }}
{{- $secrets = append $secrets (list "broker" $given.broker "CANVAS_AMQP_URL") }}
{{- end }}
{{- if and (has "cache" .clients) (eq .root.Values.redis.mode "external") }}
{{- $secrets = append $secrets (list "cache" $given.cache "CANVAS_REDIS_URL") }}
{{- end }}
{{- toJson $secrets }}
{{- end }}

{{/* Settings of the four processes. The migration has none. */}}
{{- define "canvas.settings" -}}
CANVAS_LISTEN: 0.0.0.0:8080
CANVAS_ADMIN_LISTEN: 0.0.0.0:9090
CANVAS_PUBLIC_URL: {{ .Values.publicUrl | quote }}
CANVAS_BLOB_URL: {{ .Values.blobs.url | quote }}
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

{{/* The parts of a pod of PostgreSQL, RabbitMQ or Redis. */}}
{{- define "canvas.servicePod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 999
  runAsGroup: 999
  fsGroup: 999
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{/* The parts of a pod that every workload has: the security context is that of the restricted profile of the pod security standards. No
     process uses the Kubernetes API, so none gets a token for it. */}}
{{- define "canvas.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
volumes:
  {{- range include "canvas.secrets" . | fromJsonArray }}
  {{- $secret := index . 1 }}
  - name: {{ index . 0 }}
    secret:
      secretName: {{ $secret.name }}
      defaultMode: 0440
      items: [{ key: {{ $secret.key }}, path: value }]
  {{- end }}
  {{- if and .blobs .root.Values.blobs.credentialsSecret (hasPrefix "gs://" .root.Values.blobs.url) }}
  - name: gcs
    secret:
      secretName: {{ .root.Values.blobs.credentialsSecret }}
      defaultMode: 0440
      items: [{ key: key.json, path: key.json }]
  {{- end }}
  {{- if and .blobs .root.Values.blobs.volumeClaim }}
  - name: blobs
    persistentVolumeClaim: { claimName: {{ .root.Values.blobs.volumeClaim }} }
  {{- end }}
  {{- with .values.volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The parts of a container that every workload has. */}}
{{- define "canvas.container" -}}
name: process
image: {{ include "canvas.image" (dict "root" .root "name" .image) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- if ne .name "migrate" }}
envFrom:
  - configMapRef: { name: {{ .root.Release.Name }}-settings }
{{- end }}
volumeMounts:
  {{- range include "canvas.secrets" . | fromJsonArray }}
  - { name: {{ index . 0 }}, mountPath: /run/canvas/{{ index . 0 }}, readOnly: true }
  {{- end }}
  {{- if and .blobs .root.Values.blobs.credentialsSecret (hasPrefix "gs://" .root.Values.blobs.url) }}
  - { name: gcs, mountPath: /run/canvas/gcs, readOnly: true }
  {{- end }}
  {{- if and .blobs .root.Values.blobs.volumeClaim }}
  - { name: blobs, mountPath: /var/lib/canvas/blobs }
  {{- end }}
  {{- with .values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
resources: {{- toYaml .values.resources | nindent 2 }}
env:
  {{- range include "canvas.secrets" . | fromJsonArray }}
  - { name: {{ index . 2 }}_FILE, value: /run/canvas/{{ index . 0 }}/value }
  {{- end }}
  {{- $secrets := .root.Values.secrets }}
  {{- if and (has "broker" .clients) (ne .root.Values.rabbitmq.mode "external") }}
  - { name: RABBITMQ_USERNAME, valueFrom: { secretKeyRef: { name: {{ $secrets.broker.name }}, key: username } } }
  - { name: RABBITMQ_PASSWORD, valueFrom: { secretKeyRef: { name: {{ $secrets.broker.name }}, key: password } } }
  - { name: CANVAS_AMQP_URL, value: "amqp://$(RABBITMQ_USERNAME):$(RABBITMQ_PASSWORD)@rabbitmq:5672/%2f" }
  {{- end }}
  {{- if and (has "cache" .clients) (ne .root.Values.redis.mode "external") }}
  - { name: REDIS_PASSWORD, valueFrom: { secretKeyRef: { name: {{ $secrets.cache.name }}, key: {{ $secrets.cache.key }} } } }
  - { name: CANVAS_REDIS_URL, value: "redis://default:$(REDIS_PASSWORD)@redis:6379/0" }
  {{- end }}
  {{- if .values.memoryMiB }}
  - { name: CANVAS_IMAGE_MEMORY_MIB, value: {{ .values.memoryMiB | quote }} }
  - { name: CANVAS_GENERATION_MEMORY_MIB, value: {{ .values.generationMemoryMiB | quote }} }
  {{- end }}
  {{- $scheme := (urlParse .root.Values.blobs.url).scheme }}
  {{- if .blobs }}
  {{- with .root.Values.blobs.credentialsSecret }}
  {{- if eq $scheme "s3" }}
  - { name: AWS_ACCESS_KEY_ID, valueFrom: { secretKeyRef: { name: {{ . }}, key: ACCESS_KEY_ID } } }
  - { name: AWS_SECRET_ACCESS_KEY, valueFrom: { secretKeyRef: { name: {{ . }}, key: SECRET_ACCESS_KEY } } }
  {{- else if eq $scheme "gs" }}
  - { name: GOOGLE_APPLICATION_CREDENTIALS, value: /run/canvas/gcs/key.json }
  {{- else if eq $scheme "az" }}
  - { name: AZURE_STORAGE_ACCOUNT_KEY, valueFrom: { secretKeyRef: { name: {{ . }}, key: ACCOUNT_KEY } } }
  {{- end }}
  {{- end }}
  {{- end }}
  {{- with .values.env }}
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
  # Without `replicas`, so that an upgrade keeps the number that an autoscaler or an operator set.
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
        {{- with .values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        # A change of the settings restarts the pods.
        checksum/settings: {{ include "canvas.settings" .root | sha256sum }}
        {{- with .values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
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
