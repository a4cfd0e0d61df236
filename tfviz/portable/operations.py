"""The operations of the page's engine, by aten's names: those of `view/js/engine/operations.js`, as a test checks."""

OPERATIONS = frozenset(
    """
    __and__.Scalar __and__.Tensor __lshift__.Scalar __lshift__.Tensor __or__.Scalar __or__.Tensor
    __rshift__.Scalar __rshift__.Tensor __xor__.Scalar __xor__.Tensor _log_softmax
    _native_batch_norm_legit_no_training _safe_softmax _softmax _to_copy _unsafe_view abs acos
    acosh add.Scalar add.Tensor addcdiv addcmul addmm adjoint alias all all.dim all.dims amax amin aminmax any
    any.dim any.dims arange arange.start arange.start_step argmax argmin argsort argsort.stable as_strided asin
    asinh atan atan2 atanh avg_pool1d avg_pool2d baddbmm batch_norm bitwise_and.Scalar bitwise_and.Tensor
    bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar bitwise_not bitwise_or.Scalar bitwise_or.Tensor
    bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar bitwise_xor.Scalar bitwise_xor.Tensor bmm
    broadcast_tensors broadcast_to cat cdist ceil celu chunk clamp clamp.Tensor clamp_max clamp_max.Tensor
    clamp_min clamp_min.Tensor clip clone concat constant_pad_nd contiguous conv1d conv1d.padding conv2d
    conv2d.padding copy cos cosh cosine_similarity count_nonzero count_nonzero.dim_IntList cross_entropy_loss
    cummax cummin cumprod cumsum deg2rad detach diag diag_embed diagonal diff div.Scalar div.Scalar_mode
    div.Tensor div.Tensor_mode dot dropout einsum elu embedding empty.memory_format empty_like eq.Scalar
    eq.Tensor erf exp exp2 expand expand_as expm1 eye eye.m fill.Scalar fill.Tensor flatten.using_ints flip
    floor floor_divide floor_divide.Scalar fmod.Scalar fmod.Tensor frac full full_like gather ge.Scalar
    ge.Tensor gelu ger glu group_norm gru.input gt.Scalar gt.Tensor hardsigmoid hardswish hardtanh heaviside
    hstack hypot index.Tensor index_add index_copy index_fill.int_Scalar index_fill.int_Tensor index_put
    index_select instance_norm isfinite isinf isnan kl_div layer_norm le.Scalar le.Tensor leaky_relu lerp.Scalar
    lerp.Tensor lift_fresh_copy linalg_norm linalg_vector_norm linear linspace log log10 log1p log2 log_sigmoid
    log_softmax.int logaddexp logcumsumexp logical_and logical_not logical_or logical_xor
    logit logsumexp lstm.input lt.Scalar lt.Tensor mT masked_fill.Scalar masked_fill.Tensor matmul max max.dim
    max.other max_pool1d max_pool2d maximum mean mean.dim median meshgrid meshgrid.indexing min min.dim
    min.other minimum mish mm movedim.int movedim.intlist mse_loss mul.Scalar mul.Tensor multiply.Scalar
    multiply.Tensor mv nan_to_num narrow native_layer_norm ne.Scalar ne.Tensor neg new_empty new_full new_ones
    new_zeros nll_loss_nd norm.Scalar norm.ScalarOpt_dim numpy_T one_hot ones ones_like outer pad
    pairwise_distance permute pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor prelu prod prod.dim_int rad2deg
    ravel reciprocal relu relu6 remainder.Scalar remainder.Tensor repeat repeat_interleave.self_int reshape
    reshape_as rms_norm rnn_relu.input rnn_tanh.input roll round round.decimals rsqrt rsub.Scalar rsub.Tensor
    scalar_tensor scaled_dot_product_attention scatter.src scatter.value scatter_add select.int select_scatter
    selu sgn sigmoid sign silu sin sinc sinh slice.Tensor slice_scatter softmax.int softplus sort sort.stable
    special_entr split.Tensor split_with_sizes sqrt square squeeze squeeze.dim squeeze.dims stack std
    std.correction std.dim std_mean std_mean.correction std_mean.dim sub.Scalar sub.Tensor sum sum.dim_IntList
    swapaxes swapdims t take take_along_dim tan tanh threshold tile to.dtype topk trace
    transpose.int tril triu trunc type_as unbind.int unflatten.int unfold unsqueeze var var.correction var.dim
    var_mean var_mean.correction var_mean.dim view view_as vstack where.Scalar where.ScalarOther
    where.ScalarSelf where.self xlogy.Scalar_Other xlogy.Tensor zeros zeros_like
    """.split()  # noqa: SIM905
)
# arguments that say where or how a result lies in memory, or do not change it
LEFT_OUT = {"memory_format", "layout", "device", "pin_memory", "generator", "out", "non_blocking", "copy"}
