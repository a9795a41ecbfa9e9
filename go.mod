module github.com/flowgate/flowgate

go 1.26.0

require (
	antrea.io/libOpenflow v0.15.0
	github.com/Microsoft/go-winio v0.6.2
	github.com/cenkalti/backoff/v4 v4.3.0
	github.com/ovn-kubernetes/libovsdb v0.8.1
	github.com/sirupsen/logrus v1.10.2
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.24.0
	golang.org/x/sys v0.30.0
)

require (
	github.com/go-logr/logr v1.4.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	k8s.io/klog/v2 v2.130.1 // indirect
)
