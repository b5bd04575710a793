// Command oracle answers, line by line, what Kubernetes' own code makes of a quantity or a pod.
//
// Each line of standard input is one JSON object: {"quantity": text} asks resource.ParseQuantity, {"json": value} asks
// Quantity.UnmarshalJSON, {"pod": object, "default": bool, "status": bool} asks PodRequests with the options of
// kube-scheduler, after the API server's defaulting where "default" is set.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"math/big"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	helpers "k8s.io/component-helpers/resource"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	core "k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
)

type question struct {
	Quantity *string         `json:"quantity"`
	JSON     json.RawMessage `json:"json"`
	Pod      json.RawMessage `json:"pod"`
	Default  bool            `json:"default"`
	Status   bool            `json:"status"`
}

type answer struct {
	Error string `json:"error"`
	// Amounts in units of 1e-9.
	Nano     string            `json:"nano,omitempty"`
	Decimal  string            `json:"decimal,omitempty"`
	Binary   string            `json:"binary,omitempty"`
	Requests map[string]string `json:"requests,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<20), 1<<26)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		reply, err := answerLine(lines.Bytes())
		if err != nil {
			reply = answer{Error: err.Error()}
		}
		if err := out.Encode(reply); err != nil {
			log.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

func answerLine(line []byte) (answer, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		log.Fatalf("not a question: %v", err)
	}
	switch {
	case asked.Quantity != nil:
		quantity, err := resource.ParseQuantity(*asked.Quantity)
		return describe(quantity), err
	case asked.JSON != nil:
		var quantity resource.Quantity
		err := quantity.UnmarshalJSON(asked.JSON)
		return describe(quantity), err
	default:
		return podRequests(asked)
	}
}

func describe(quantity resource.Quantity) answer {
	return answer{
		Nano:    nano(quantity),
		Decimal: resource.NewDecimalQuantity(*quantity.AsDec(), resource.DecimalSI).String(),
		Binary:  resource.NewDecimalQuantity(*quantity.AsDec(), resource.BinarySI).String(),
	}
}

// nano is exact: ParseQuantity leaves nothing finer.
func nano(quantity resource.Quantity) string {
	exact := quantity.AsDec()
	shift := big.NewInt(int64(9 - exact.Scale()))
	power := new(big.Int).Exp(big.NewInt(10), new(big.Int).Abs(shift), nil)
	if shift.Sign() < 0 {
		return new(big.Int).Quo(exact.UnscaledBig(), power).String()
	}
	return new(big.Int).Mul(exact.UnscaledBig(), power).String()
}

func podRequests(asked question) (answer, error) {
	var pod v1.Pod
	if err := json.Unmarshal(asked.Pod, &pod); err != nil {
		return answer{}, err
	}
	if asked.Default {
		if err := applyDefaults(&pod); err != nil {
			return answer{}, err
		}
	}
	if err := refuseNegative(&pod, asked.Default); err != nil {
		return answer{}, err
	}
	// As kube-scheduler 1.37 asks with its default feature gates, see PodInfo.CalculateResource.
	total := helpers.PodRequests(&pod, helpers.PodResourcesOptions{
		UseStatusResources: asked.Status,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
	requests := make(map[string]string, len(total))
	for name, quantity := range total {
		requests[string(name)] = nano(quantity)
	}
	return answer{Requests: requests}, nil
}

// applyDefaults does to a pod what decoding and PrepareForCreate do in the API server.
func applyDefaults(pod *v1.Pod) error {
	corev1.SetObjectDefaults_Pod(pod)
	var internal core.Pod
	if err := corev1.Convert_v1_Pod_To_core_Pod(pod, &internal, nil); err != nil {
		return err
	}
	podutil.DefaultPodLevelResources(&internal)
	return corev1.Convert_core_Pod_To_v1_Pod(&internal, pod, nil)
}

// refuseNegative applies the API server's rule to the requests, and to the limits of a pod that is being created.
func refuseNegative(pod *v1.Pod, created bool) error {
	root := field.NewPath("spec")
	lists := []v1.ResourceList{pod.Spec.Overhead}
	add := func(requirements v1.ResourceRequirements) {
		lists = append(lists, requirements.Requests)
		if created {
			lists = append(lists, requirements.Limits)
		}
	}
	for _, container := range append(append([]v1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
		add(container.Resources)
	}
	if pod.Spec.Resources != nil {
		add(*pod.Spec.Resources)
	}
	for _, list := range lists {
		for name, quantity := range list {
			if problems := validation.ValidateNonnegativeQuantity(quantity, root.Key(string(name))); len(problems) > 0 {
				return fmt.Errorf("%w", problems.ToAggregate())
			}
		}
	}
	return nil
}
