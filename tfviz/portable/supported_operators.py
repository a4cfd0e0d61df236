"""`SUPPORTED_OPERATORS`: the names of the aten operators that the page's engine has (`view/js/engine/operations.js`).

These are the operators into which PyTorch decomposes others, and operators that are common in models or faster as one
step. Other operators are decomposed into them; see `operators.decompositions`.
"""

SUPPORTED_OPERATORS = frozenset(
    """
    __and__.Scalar __and__.Tensor __lshift__.Scalar __lshift__.Tensor __or__.Scalar __or__.Tensor
    __rshift__.Scalar __rshift__.Tensor _native_batch_norm_legit_no_training _to_copy abs acos acosh add.Scalar
    add.Tensor addmm alias all all.dim amax amin any any.dim any.dims arange arange.start arange.start_step
    argmax argmin asin asinh atan atan2 atanh avg_pool1d avg_pool2d batch_norm bitwise_and.Scalar
    bitwise_and.Tensor bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar bitwise_not bitwise_or.Scalar
    bitwise_or.Tensor bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar bitwise_xor.Scalar
    bitwise_xor.Tensor bmm cat cdist ceil chunk clamp clamp.Tensor clone constant_pad_nd contiguous conv1d
    conv1d.padding conv2d conv2d.padding copy cos cosh cummax cummin cumprod cumsum detach diagonal div.Scalar
    div.Scalar_mode div.Tensor div.Tensor_mode dropout elu embedding empty.memory_format empty_like eq.Scalar
    eq.Tensor erf exp exp2 expand expand_as expm1 flatten.using_ints flip floor fmod.Scalar fmod.Tensor full
    full_like gather ge.Scalar ge.Tensor gelu group_norm gru.input gt.Scalar gt.Tensor hardtanh hypot
    index.Tensor index_put index_select instance_norm isinf isnan layer_norm le.Scalar le.Tensor leaky_relu
    lift_fresh_copy linalg_vector_norm linear log log10 log1p log2 log_softmax.int logcumsumexp logical_and
    logical_not logical_or logical_xor lstm.input lt.Scalar lt.Tensor mT masked_fill.Scalar masked_fill.Tensor
    matmul max max.dim max_pool1d max_pool2d maximum mean mean.dim median min min.dim minimum mm mul.Scalar
    mul.Tensor ne.Scalar ne.Tensor neg one_hot ones ones_like permute pow.Scalar pow.Tensor_Scalar
    pow.Tensor_Tensor prod prod.dim_int reciprocal relu remainder.Scalar remainder.Tensor repeat reshape
    rms_norm rnn_relu.input rnn_tanh.input round round.decimals rsqrt rsub.Scalar scalar_tensor
    scaled_dot_product_attention scatter.src scatter.value scatter_add select.int sigmoid sign silu sin sinh
    slice.Tensor slice_scatter softmax.int sort sort.stable split.Tensor split_with_sizes sqrt square
    squeeze.dim squeeze.dims stack sub.Scalar sub.Tensor sum sum.dim_IntList t take tan tanh to.dtype topk
    transpose.int tril triu trunc type_as unbind.int unflatten.int unfold unsqueeze var.correction
    var_mean.correction view view_as where.Scalar where.ScalarOther where.ScalarSelf where.self
    xlogy.Scalar_Other xlogy.Tensor zeros zeros_like
    """.split()  # noqa: SIM905
)
# arguments that only affect the memory of a result, or not the result at all
OMITTED_ARGUMENTS = {"memory_format", "layout", "device", "pin_memory", "generator", "out", "non_blocking", "copy"}
