// Replaces MLX's header of this name, which has one specialisation per address space; the shim has
// one address space.
#pragma once

namespace metal {

using std::is_empty;
using std::is_empty_v;
using std::void_t;

template <class T>
struct is_static : is_empty<remove_cv_t<T>> {};
template <class T>
using pointer_element_t = remove_cv_t<std::remove_pointer_t<remove_cv_t<T>>>;

}  // namespace metal
