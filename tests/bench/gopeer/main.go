// Command gopeer is the compiled yardstick for the admission webhook: a TLS
// server on net/http that answers POST /mutate with a base64 JSON patch. It
// decodes the review into small structs, only the fields that its rules read,
// and writes the two known patch operations: the fastest thing that a careful
// Go author would ship. Standard library only.
//
//	gopeer -addr 127.0.0.1:0 -cert tls.crt -key tls.key
//
// Prints the address that it listens on as its first line.
package main

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
)

const (
	lws        = "leaderworkerset.sigs.k8s.io/"
	groupLabel = "scheduler.example.com/pod-group"
	groupAnno  = "scheduling.k8s.io/group-name"
	maxBody    = 7 << 20
)

// response types

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type admissionResponse struct {
	UID       string  `json:"uid"`
	Allowed   bool    `json:"allowed"`
	Status    *status `json:"status,omitempty"`
	PatchType string  `json:"patchType,omitempty"`
	Patch     []byte  `json:"patch,omitempty"` // encoding/json writes base64
}

type reviewOut struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Response   *admissionResponse `json:"response"`
}

type patchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// lean request types

type leanContainer struct {
	Name      string `json:"name"`
	Resources struct {
		Limits   map[string]any `json:"limits"`
		Requests map[string]any `json:"requests"`
	} `json:"resources"`
}

type leanPod struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Containers        []leanContainer `json:"containers"`
		RestartPolicy     string          `json:"restartPolicy"`
		SchedulerName     string          `json:"schedulerName"`
		PriorityClassName string          `json:"priorityClassName"`
		HostNetwork       bool            `json:"hostNetwork"`
		Tolerations       []struct {
			Operator string `json:"operator"`
		} `json:"tolerations"`
	} `json:"spec"`
}

type leanReview struct {
	Kind    string `json:"kind"`
	Request *struct {
		UID       string `json:"uid"`
		Operation string `json:"operation"`
		Kind      struct {
			Kind string `json:"kind"`
		} `json:"kind"`
		Object leanPod `json:"object"`
	} `json:"request"`
}

// view is what the rules read, whatever the pod was decoded into.
type view struct {
	kind, operation, name                           string
	labels, annotations                             map[string]string
	restartPolicy, schedulerName, priorityClassName string
	hostNetwork                                     bool
	tolerationOps                                   []string
	gpus                                            [][2]string // limit, request
}

func dns1123Label(s string) bool {
	if len(s) == 0 || len(s) > 63 {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alnum && (c != '-' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return true
}

func hex40(s string) bool {
	if len(s) != 40 {
		return false
	}
	for i := 0; i < 40; i++ {
		c := s[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

func index(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && (s == "0" || s[0] != '0')
}

// rules returns the two values to stamp, or why the pod is refused.
func rules(v *view) (group, anno, refusal string) {
	if v.kind != "Pod" || v.operation != "CREATE" {
		return "", "", "only pod creation is handled"
	}
	set := v.labels[lws+"name"]
	if !dns1123Label(set) {
		return "", "", "set name is not a DNS label"
	}
	gi, ok := index(v.labels[lws+"group-index"])
	if !ok {
		return "", "", "group index is not a number"
	}
	wi, ok := index(v.labels[lws+"worker-index"])
	if !ok {
		return "", "", "worker index is not a number"
	}
	size, ok := index(v.annotations[lws+"size"])
	if !ok || size < 1 || size > 1024 || wi >= size {
		return "", "", "size is out of range"
	}
	if !hex40(v.labels[lws+"group-key"]) {
		return "", "", "group key is not a hash"
	}
	leader := set + "-" + strconv.Itoa(gi)
	want := leader
	if wi > 0 {
		want = leader + "-" + strconv.Itoa(wi)
	}
	if v.name != want {
		return "", "", "pod name does not follow from its indices"
	}
	switch v.schedulerName {
	case "default-scheduler", "volcano", "kai-scheduler", "koord-scheduler":
	default:
		return "", "", "scheduler is not known"
	}
	if v.priorityClassName != "" && !dns1123Label(v.priorityClassName) {
		return "", "", "priority class is not a DNS label"
	}
	if v.hostNetwork {
		return "", "", "host network is not allowed"
	}
	switch v.restartPolicy {
	case "Always", "OnFailure", "Never":
	default:
		return "", "", "restart policy is not known"
	}
	if len(v.tolerationOps) > 64 {
		return "", "", "too many tolerations"
	}
	for _, op := range v.tolerationOps {
		if op != "" && op != "Exists" && op != "Equal" {
			return "", "", "toleration operator is not known"
		}
	}
	for _, g := range v.gpus {
		if _, ok := index(g[0]); !ok || g[0] != g[1] {
			return "", "", "accelerators must be whole and requested as limited"
		}
	}
	if old, ok := v.labels[groupLabel]; ok && old != leader {
		return "", "", "pod is already in another group"
	}
	return leader, leader, ""
}

func knownPatch(v *view, group, anno string) ([]byte, error) {
	ops := make([]patchOp, 0, 2)
	esc := strings.NewReplacer("~", "~0", "/", "~1")
	ops = append(ops, patchOp{"add", "/metadata/annotations/" + esc.Replace(groupAnno), anno},
		patchOp{"add", "/metadata/labels/" + esc.Replace(groupLabel), group})
	return json.Marshal(ops)
}

func answer(uid, refusal string, patch []byte) *reviewOut {
	r := &admissionResponse{UID: uid, Allowed: refusal == ""}
	if refusal != "" {
		r.Status = &status{Code: 403, Message: refusal}
	} else {
		r.PatchType, r.Patch = "JSONPatch", patch
	}
	return &reviewOut{"admission.k8s.io/v1", "AdmissionReview", r}
}

const gpuKey = "nvidia.com/gpu"

func str(v any) string { s, _ := v.(string); return s }

func gpuOf(limits, requests map[string]any) ([2]string, bool) {
	l, ok := limits[gpuKey]
	return [2]string{str(l), str(requests[gpuKey])}, ok
}

func lean(body []byte) (*reviewOut, error) {
	var in leanReview
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if in.Request == nil {
		return nil, fmt.Errorf("no request in the review")
	}
	p := &in.Request.Object
	v := &view{kind: in.Request.Kind.Kind, operation: in.Request.Operation, name: p.Metadata.Name,
		labels: p.Metadata.Labels, annotations: p.Metadata.Annotations, restartPolicy: p.Spec.RestartPolicy,
		schedulerName: p.Spec.SchedulerName, priorityClassName: p.Spec.PriorityClassName, hostNetwork: p.Spec.HostNetwork}
	for i := range p.Spec.Tolerations {
		v.tolerationOps = append(v.tolerationOps, p.Spec.Tolerations[i].Operator)
	}
	for i := range p.Spec.Containers {
		r := &p.Spec.Containers[i].Resources
		if g, ok := gpuOf(r.Limits, r.Requests); ok {
			v.gpus = append(v.gpus, g)
		}
	}
	return finish(in.Request.UID, v)
}

func finish(uid string, v *view) (*reviewOut, error) {
	group, anno, refusal := rules(v)
	if refusal != "" {
		return answer(uid, refusal, nil), nil
	}
	patch, err := knownPatch(v, group, anno)
	if err != nil {
		return nil, err
	}
	return answer(uid, "", patch), nil
}

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "address to listen on")
	cert := flag.String("cert", "tls.crt", "certificate")
	key := flag.String("key", "tls.key", "private key")
	flag.Parse()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	mux.HandleFunc("POST /mutate", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
			http.Error(w, "application/json is expected", http.StatusUnsupportedMediaType)
			return
		}
		out, err := lean(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(out); err != nil {
			log.Print(err)
		}
	})
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		log.Fatal(err)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	srv := &http.Server{Handler: mux, TLSConfig: cfg, ErrorLog: log.New(io.Discard, "", 0)}
	srv.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ln.Addr())
	log.Fatal(srv.ServeTLS(ln, "", ""))
}
