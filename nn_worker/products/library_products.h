// Products that use the plans of a vendor's library where it accepts a product, and our own kernel
// (kernel_products.h) for all other products.

#ifndef SATRAP_NN_WORKER_PRODUCTS_LIBRARY_PRODUCTS_H_
#define SATRAP_NN_WORKER_PRODUCTS_LIBRARY_PRODUCTS_H_

#include <memory>

#include "nn_worker/device/product_plan.h"
#include "nn_worker/products/products.h"

namespace satrap {

// How plans multiply f32 factors. Our own kernel never rounds f32 factors.
enum class F32Factors { kExact, kTf32 };

std::unique_ptr<Products> NewLibraryProducts(std::unique_ptr<ProductPlanner> planner,
                                             F32Factors f32_factors = F32Factors::kExact);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_PRODUCTS_LIBRARY_PRODUCTS_H_
