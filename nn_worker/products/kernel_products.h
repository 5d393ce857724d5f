// Matrix products by the kernel of kernels/matrix_product.h, and by those of kernels/one_output.h
// for layers of one output, on any device. Plan() always returns null.

#ifndef SATRAP_NN_WORKER_PRODUCTS_KERNEL_PRODUCTS_H_
#define SATRAP_NN_WORKER_PRODUCTS_KERNEL_PRODUCTS_H_

#include <memory>

#include "nn_worker/products/products.h"

namespace satrap {

std::unique_ptr<Products> NewKernelProducts();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_PRODUCTS_KERNEL_PRODUCTS_H_
