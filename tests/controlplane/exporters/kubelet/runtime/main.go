// Command runtime answers the kubelet as a container runtime that is ready and runs nothing.
package main

import (
	"log"
	"os"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: runtime unix:///path/of/the/socket /folder/of/images")
	}
	runtime := fake.NewFakeRemoteRuntime()
	// Without a file system for images the kubelet's eviction manager never gets going.
	images := &runtimeapi.FilesystemUsage{
		FsId:      &runtimeapi.FilesystemIdentifier{Mountpoint: os.Args[2]},
		UsedBytes: &runtimeapi.UInt64Value{},
	}
	runtime.ImageService.SetFakeFilesystemUsage([]*runtimeapi.FilesystemUsage{images})
	runtime.ImageService.SetFakeContainerFilesystemUsage([]*runtimeapi.FilesystemUsage{images})
	if err := runtime.Start(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	select {}
}
