// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// hostnameLabel is what a kubelet puts on its Node.
const hostnameLabel = "kubernetes.io/hostname"

// CreateNode makes a Node object with the labels, and the hostname label that
// a kubelet would add. Nothing else sets its status. If it exists, it gets
// the labels; see SetNodeLabels.
func (l *Lab) CreateNode(ctx context.Context, name string, labels map[string]string) error {
	return l.SetNodeLabels(ctx, name, labels)
}

// SetNodeLabels makes labels the only ones that the lab gives to a Node:
// those of an earlier call that are not among them go away, those set by
// others stay.
func (l *Lab) SetNodeLabels(ctx context.Context, name string, labels map[string]string) error {
	client, err := l.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandDeadline)
	defer cancel()
	node := corev1ac.Node(name).WithLabels(map[string]string{hostnameLabel: name}).WithLabels(labels)
	_, err = client.CoreV1().Nodes().Apply(ctx, node, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("set labels of node %s: %w", name, err)
	}
	return nil
}

// DeleteNode deletes a Node object. One that does not exist is no error.
func (l *Lab) DeleteNode(ctx context.Context, name string) error {
	client, err := l.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandDeadline)
	defer cancel()
	if err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", name, err)
	}
	return nil
}
