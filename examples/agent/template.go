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
	values := []string{
		"{ofport}", strconv.FormatUint(uint64(port.Number), 10),
		"{name}", port.Name,
		"{mac}", port.ExternalIDs["attached-mac"],
		"{ip}", port.ExternalIDs["ip-address"],
		"{iface-id}", port.ExternalIDs["iface-id"],
	}
	for i := 0; i < len(values); i += 2 {
		placeholder, value := values[i], values[i+1]
		switch {
		case !strings.Contains(t.text, placeholder):
		case value == "":
			return nil, fmt.Errorf("%s: port %s has no %s", t.file, port.Name, placeholder)
		case strings.ContainsAny(value, "\r\n"): // would add flows of its own
			return nil, fmt.Errorf("%s: port %s: %s is %q", t.file, port.Name, placeholder, value)
		}
	}
	text := strings.NewReplacer(values...).Replace(t.text) // once: what is put in is not searched
	return cli.ParseFlows(t.file, strings.NewReader(text), nil)
}
