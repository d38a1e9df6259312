// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// crowd creates Nodes, and Pods on them, that are nothing to the worker. They are objects without anything behind
// them and have no status, so that real ones are bigger.
func (c *cluster) crowd(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	nodes := numbered("other", crowdNodes)
	if err := c.otherNodes(ctx, client, nodes); err != nil {
		return err
	}
	c.b.say("creating %d Pods on them", crowdPods)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "crowd"}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	return parallel(ctx, crowdPods, func(ctx context.Context, i int) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		pod := somePod(i, nodes[i%len(nodes)])
		if _, err := client.CoreV1().Pods(namespace.Name).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create pod %s: %w", pod.Name, err)
		}
		return nil
	})
}

// otherNodes creates Nodes.
func (c *cluster) otherNodes(ctx context.Context, client kubernetes.Interface, names []string) error {
	c.b.say("creating %d Nodes", len(names))
	return parallel(ctx, len(names), func(ctx context.Context, i int) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		node := someNode(i, names[i])
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
		return nil
	})
}

func someNode(i int, name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"node-role.kubernetes.io/worker": "", "topology.kubernetes.io/zone": fmt.Sprintf("zone-%d", i%3),
			},
			Annotations: map[string]string{
				"k8s.ovn.org/node-subnets":        fmt.Sprintf(`{"default":["10.%d.%d.0/24"]}`, 128+i/256, i%256),
				"k8s.ovn.org/node-primary-ifaddr": fmt.Sprintf(`{"ipv4":"172.28.%d.%d/16"}`, i/200, 10+i%200),
			},
		},
		Spec: corev1.NodeSpec{PodCIDR: fmt.Sprintf("10.%d.%d.0/24", 128+i/256, i%256)},
	}
}

func somePod(i int, node string) *corev1.Pod {
	name := fmt.Sprintf("web-%04d", i)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{"app": "web", "pod-template-hash": "7c9f8d5b6", "team": fmt.Sprintf("team-%d", i%20)},
			Annotations: map[string]string{
				"k8s.ovn.org/pod-networks": fmt.Sprintf(
					`{"default":{"ip_addresses":["10.128.%d.%d/23"],"mac_address":"0a:58:0a:80:%02x:%02x","gateway_ips":["10.128.0.1"]}}`,
					i/250, i%250, i/250, i%250),
				"example.com/deployed-at": time.Unix(int64(1_700_000_000+i), 0).UTC().Format(time.RFC3339),
			},
		},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{{
				Name: "web", Image: "registry.example.com/web:1.27.3",
				Args:         []string{"--listen=:8080", "--name=" + name},
				Env:          []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}, {Name: "REGION", Value: "north"}},
				Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				VolumeMounts: []corev1.VolumeMount{{Name: "cache", MountPath: "/var/cache/web"}},
			}},
			Volumes: []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}
