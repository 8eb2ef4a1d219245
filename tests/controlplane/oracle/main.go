// Command oracle says what kube-scheduler does with a Pod.
//
// It reads cases as JSON lines from standard input and writes each back with one more member, `expect`. A case is
// put before the scheduler of the linked Kubernetes release: its own cache, queue, plugins and PostFilter, with a
// client that serves the case's objects and swallows every write. Cases are answered one after the other; run
// several processes to use several processors.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// A panic of a plugin in one of the framework's goroutines is an answer, and must not end the others' process.
	utilruntime.ReallyCrash = false
	if err := answerAll(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// answerAll stops at the first line that it cannot answer: a case without an answer would go unnoticed.
func answerAll(in io.Reader, out io.Writer) error {
	reader := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			answered, problem := answerLine(line)
			if problem != nil {
				return problem
			}
			if _, problem = out.Write(answered); problem != nil {
				return problem
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func answerLine(line []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return nil, fmt.Errorf("a line is not a JSON object: %w", err)
	}
	var asked scheduleCase
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, fmt.Errorf("case %s: %w", fields["name"], err)
	}
	expect, err := asked.answer()
	if err != nil {
		return nil, fmt.Errorf("case %q: %w", asked.Name, err)
	}
	if fields["expect"], err = encode(expect); err != nil {
		return nil, err
	}
	return encode(fields)
}

// encode leaves `<`, `>` and `&` in texts as they are, as the scheduler writes them.
func encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return buffer.Bytes(), err
}
