// A Kubernetes cluster of one node for tests (tests/pods/cluster/up): a real API server, scheduler,
// kubelet and containerd, and an image of this build. The cluster ends with the object, and also if
// the test's process is killed.
//
// Not thread-safe.

#ifndef SATRAP_TESTS_PODS_KUBE_CLUSTER_H_
#define SATRAP_TESTS_PODS_KUBE_CLUSTER_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace satrap {

class KubeCluster {
 public:
  // Starts a cluster and loads the image. From then on the cluster's kubectl comes first on this
  // process's PATH. If SATRAP_REQUIRE_KUBERNETES is not set, prints that and returns null. Fails if
  // the cluster's programs are missing (`./setup kubernetes` builds them) or this process does not
  // run as root. REQUIRES: the working folder is that of a test
  static std::unique_ptr<KubeCluster> Start();
  ~KubeCluster();

  const std::string& image() const { return image_; }
  // Loads an image of another build, whose programs do the same: that of an embedding PS has one
  // more byte. Returns the image's name.
  std::string LoadOtherImage() const;
  // Runs kubectl as the cluster's administrator and returns its stdout. Fails the test if kubectl
  // fails.
  std::string Kubectl(const std::vector<std::string>& args) const;
  // Creates the objects in `yaml` with `kubectl create`. `name` names the file.
  void Create(const std::string& name, const std::string& yaml) const;
  // Writes a configuration of kubectl to `path`. With it, programs that this process starts later
  // reach the cluster as the service account `user` of the namespace `space`, which is their
  // default namespace.
  void BecomeUser(const std::string& user, const std::string& space, const std::string& path) const;

  // Lets pods name the seccomp profile NAME (localhostProfile), which `json` describes.
  void AddSeccompProfile(const std::string& name, const std::string& json) const;

  // Evicts all pods from the node, waits until they are gone, and lets pods come back.
  void DrainNode() const;
  // Ends the kubelet, and waits until its successor answers. Containers continue to run meanwhile.
  void RestartKubelet() const;
  // Sends a signal to the controllers. Between SIGSTOP and SIGCONT no pod is made or replaced, no
  // Job ends, and nothing is removed together with its owner.
  void SignalControllers(int signal) const;

 private:
  KubeCluster() = default;
  // Makes an image of the bundle of this build, after the script `change` was carried out in the
  // bundle's folder. Returns its name.
  std::string LoadImage(const std::string& change) const;
  // The process of one of the cluster's daemons, such as "kubelet"; 0 if there is none now.
  pid_t DaemonOf(const std::string& program) const;

  std::string state_;  // the folder of `up`
  std::string programs_;
  std::string kubeconfig_;  // of the administrator
  std::string image_;       // its name
};

}  // namespace satrap

#endif  // SATRAP_TESTS_PODS_KUBE_CLUSTER_H_
