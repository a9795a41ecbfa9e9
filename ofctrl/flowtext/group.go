// SPDX-License-Identifier: Apache-2.0

package flowtext

const groupAll = 0xfffffffc
