package main

import (
	"encoding/json"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
)

// profileOf reads a profile as it stands in a configuration file, {} being the default one, with the defaults and
// the checks that a file gets. It answers to the Pod's scheduler name, whatever it is called.
func profileOf(raw json.RawMessage) (config.KubeSchedulerProfile, error) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	file, err := json.Marshal(map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1",
		"kind":       "KubeSchedulerConfiguration",
		"profiles":   []json.RawMessage{raw},
	})
	if err != nil {
		return config.KubeSchedulerProfile{}, err
	}
	decoded, _, err := scheme.Codecs.UniversalDecoder().Decode(file, nil, nil)
	if err != nil {
		return config.KubeSchedulerProfile{}, fmt.Errorf("profile: %w", err)
	}
	configuration, ok := decoded.(*config.KubeSchedulerConfiguration)
	if !ok {
		return config.KubeSchedulerProfile{}, fmt.Errorf("profile: read as %T", decoded)
	}
	configuration.APIVersion = "kubescheduler.config.k8s.io/v1"
	if err := validation.ValidateKubeSchedulerConfiguration(configuration); err != nil {
		return config.KubeSchedulerProfile{}, fmt.Errorf("profile: %w", err)
	}
	profile := configuration.Profiles[0]
	profile.SchedulerName = v1.DefaultSchedulerName
	return profile, nil
}

// preemptionArgs are nil where DefaultPreemption has no part in PostFilter.
func preemptionArgs(profile config.KubeSchedulerProfile, atPostFilter []config.Plugin) *config.DefaultPreemptionArgs {
	if !slices.ContainsFunc(atPostFilter, func(one config.Plugin) bool { return one.Name == defaultpreemption.Name }) {
		return nil
	}
	for _, one := range profile.PluginConfig {
		if args, ok := one.Args.(*config.DefaultPreemptionArgs); ok && one.Name == defaultpreemption.Name {
			return args
		}
	}
	return nil
}
