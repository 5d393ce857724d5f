// A Kubernetes cluster of one node for tests (tests/pods/cluster/up): a real API server, scheduler,
// kubelet and containerd, and an image of this build. It goes with the object, and also if the
// test's process is killed.
//
// Not thread-safe.

#ifndef SATRAP_TESTS_PODS_KUBE_CLUSTER_H_
#define SATRAP_TESTS_PODS_KUBE_CLUSTER_H_

#include <memory>
#include <string>
#include <vector>

namespace satrap {

class KubeCluster {
 public:
  // Starts it and loads the image; from then on its kubectl is the first on this process's PATH.
  // Null, after saying so, unless SATRAP_REQUIRE_KUBERNETES is set. Fails if its programs are not
  // there (`./setup kubernetes` builds them) or this process is not root's. REQUIRES: the working
  // folder is that of a test
  static std::unique_ptr<KubeCluster> Start();
  ~KubeCluster();

  const std::string& image() const { return image_; }
  // What kubectl prints to stdout, as the cluster's administrator. Fails the test if it fails.
  std::string Kubectl(const std::vector<std::string>& args) const;
  // `kubectl create` of objects in YAML.
  void Create(const std::string& name, const std::string& yaml) const;
  // Lets programs that this process starts reach the cluster as the service account `user` of
  // `space`, which is then also their namespace: kubectl's configuration is in `path`.
  void BecomeUser(const std::string& user, const std::string& space, const std::string& path) const;

 private:
  KubeCluster() = default;
  void LoadImage();

  std::string state_;  // the folder of `up`
  std::string programs_;
  std::string kubeconfig_;  // of the administrator
  std::string image_;       // its name
};

}  // namespace satrap

#endif  // SATRAP_TESTS_PODS_KUBE_CLUSTER_H_
