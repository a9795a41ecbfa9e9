// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/sirupsen/logrus"
)

func newFakeLab(logrus.FieldLogger) (lab, error) { return nil, errors.New("not yet") }

var _ context.Context
