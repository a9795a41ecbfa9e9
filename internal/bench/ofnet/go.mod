module github.com/flowgate/flowgate/internal/bench/ofnet

go 1.26.0

require (
	antrea.io/libOpenflow v0.15.0
	antrea.io/ofnet v0.14.0
	github.com/flowgate/flowgate v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/Microsoft/go-winio v0.6.2 // indirect
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/cenkalti/hub v1.0.2 // indirect
	github.com/cenkalti/rpc2 v1.0.3 // indirect
	github.com/contiv/libovsdb v0.0.0-20170227191248-d0061a53e358 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/orcaman/concurrent-map/v2 v2.0.1 // indirect
	github.com/sirupsen/logrus v1.10.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.30.0 // indirect
	k8s.io/klog/v2 v2.130.1 // indirect
)

replace (
	antrea.io/libOpenflow => github.com/antrea-io/libOpenflow v0.15.0
	antrea.io/ofnet => github.com/antrea-io/ofnet v0.14.0
	github.com/flowgate/flowgate => ../../..
)
