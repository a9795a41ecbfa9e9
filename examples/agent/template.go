// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/portstatus"
)

// template is flows with placeholders for one port: {ofport}, {name}, {mac},
// {ip} and {iface-id}. mac and ip come from external_ids attached-mac and
// ip-address.
type template struct {
	file string
	text string
}

func readTemplate(file string) (*template, error) {
	text, err := os.ReadFile(file)
	return &template{file, string(text)}, err
}

// flows fills the template in for a port and parses it.
func (t *template) flows(port portstatus.Port) ([]ofctrl.Message, error) {
	values := map[string]string{
		"{ofport}":   strconv.FormatUint(uint64(port.Number), 10),
		"{name}":     port.Name,
		"{mac}":      port.ExternalIDs["attached-mac"],
		"{ip}":       port.ExternalIDs["ip-address"],
		"{iface-id}": port.ExternalIDs["iface-id"],
	}
	text := t.text
	for placeholder, value := range values {
		if value == "" && strings.Contains(text, placeholder) {
			return nil, fmt.Errorf("%s: port %s has no %s", t.file, port.Name, placeholder)
		}
		text = strings.ReplaceAll(text, placeholder, value)
	}
	return cli.ParseFlows(t.file, strings.NewReader(text), nil)
}
