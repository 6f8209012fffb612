// One function per op and variant: what typed-programs takes apart. Sizes are
// such that blocks are padded on two and three ranks.
// RUN: mtp-opt %s | mtp-opt -o /dev/null
func.func @neg(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.neg %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @abs(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.abs %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @sign(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.sign %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @exp(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.exp %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @sqrt(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.sqrt %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @rsqrt(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.rsqrt %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @reciprocal(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.reciprocal %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @log(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.log %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @erf(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.erf %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @tanh(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.tanh %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @sigmoid(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.sigmoid %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @relu(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.relu %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @silu(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.silu %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @sin(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.sin %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @cos(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.cos %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @floor(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.floor %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @ceil(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.ceil %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @round(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.round %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @stop_gradient(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.stop_gradient %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @barrier(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.barrier %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @gelu(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.gelu %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @gelu_tanh(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.gelu %x {tanh} : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @not(%x: tensor<5x4x6xi1>) -> tensor<5x4x6xi1> {
  %0 = mtp.not %x : (tensor<5x4x6xi1>) -> tensor<5x4x6xi1>
  return %0 : tensor<5x4x6xi1>
}

func.func @is_nan(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xi1> {
  %0 = mtp.is_nan %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xi1>
  return %0 : tensor<5x4x6xi1>
}

func.func @is_inf(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xi1> {
  %0 = mtp.is_inf %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xi1>
  return %0 : tensor<5x4x6xi1>
}

func.func @add(%x: tensor<5x4x6xf32>, %y: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.add %x, %y : (tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @sub(%x: tensor<5x4x6xf32>, %y: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.sub %x, %y : (tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @mul(%x: tensor<5x4x6xf32>, %y: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.mul %x, %y : (tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @div(%x: tensor<5x4x6xf32>, %y: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.div %x, %y : (tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @pow(%x: tensor<5x4x6xf32>, %y: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.pow %x, %y : (tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @max(%x: tensor<5x4x6xf32>, %y: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.max %x, %y : (tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @min(%x: tensor<5x4x6xf32>, %y: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.min %x, %y : (tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @mod(%x: tensor<5x4x6xf32>, %y: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.mod %x, %y : (tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @fmod(%x: tensor<5x4x6xf32>, %y: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.fmod %x, %y : (tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @add_broadcast(%x: tensor<5x4x6xf32>, %y: tensor<4x1xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.add %x, %y : (tensor<5x4x6xf32>, tensor<4x1xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @sub_broadcast(%x: tensor<5x4x6xf32>, %y: tensor<4x1xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.sub %x, %y : (tensor<5x4x6xf32>, tensor<4x1xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @mul_broadcast(%x: tensor<5x4x6xf32>, %y: tensor<4x1xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.mul %x, %y : (tensor<5x4x6xf32>, tensor<4x1xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @div_broadcast(%x: tensor<5x4x6xf32>, %y: tensor<4x1xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.div %x, %y : (tensor<5x4x6xf32>, tensor<4x1xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @max_broadcast(%x: tensor<5x4x6xf32>, %y: tensor<4x1xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.max %x, %y : (tensor<5x4x6xf32>, tensor<4x1xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @add_integers(%x: tensor<5x4x6xi64>, %y: tensor<5x4x6xi64>) -> tensor<5x4x6xi64> {
  %0 = mtp.add %x, %y : (tensor<5x4x6xi64>, tensor<5x4x6xi64>) -> tensor<5x4x6xi64>
  return %0 : tensor<5x4x6xi64>
}

func.func @mul_integers(%x: tensor<5x4x6xi64>, %y: tensor<5x4x6xi64>) -> tensor<5x4x6xi64> {
  %0 = mtp.mul %x, %y : (tensor<5x4x6xi64>, tensor<5x4x6xi64>) -> tensor<5x4x6xi64>
  return %0 : tensor<5x4x6xi64>
}

func.func @max_integers(%x: tensor<5x4x6xi64>, %y: tensor<5x4x6xi64>) -> tensor<5x4x6xi64> {
  %0 = mtp.max %x, %y : (tensor<5x4x6xi64>, tensor<5x4x6xi64>) -> tensor<5x4x6xi64>
  return %0 : tensor<5x4x6xi64>
}

func.func @min_integers(%x: tensor<5x4x6xi64>, %y: tensor<5x4x6xi64>) -> tensor<5x4x6xi64> {
  %0 = mtp.min %x, %y : (tensor<5x4x6xi64>, tensor<5x4x6xi64>) -> tensor<5x4x6xi64>
  return %0 : tensor<5x4x6xi64>
}

func.func @sub_integers(%x: tensor<5x4x6xi64>, %y: tensor<5x4x6xi64>) -> tensor<5x4x6xi64> {
  %0 = mtp.sub %x, %y : (tensor<5x4x6xi64>, tensor<5x4x6xi64>) -> tensor<5x4x6xi64>
  return %0 : tensor<5x4x6xi64>
}

func.func @and(%x: tensor<5x4x6xi1>, %y: tensor<5x4x6xi1>) -> tensor<5x4x6xi1> {
  %0 = mtp.and %x, %y : (tensor<5x4x6xi1>, tensor<5x4x6xi1>) -> tensor<5x4x6xi1>
  return %0 : tensor<5x4x6xi1>
}

func.func @or(%x: tensor<5x4x6xi1>, %y: tensor<5x4x6xi1>) -> tensor<5x4x6xi1> {
  %0 = mtp.or %x, %y : (tensor<5x4x6xi1>, tensor<5x4x6xi1>) -> tensor<5x4x6xi1>
  return %0 : tensor<5x4x6xi1>
}

func.func @xor(%x: tensor<5x4x6xi1>, %y: tensor<5x4x6xi1>) -> tensor<5x4x6xi1> {
  %0 = mtp.xor %x, %y : (tensor<5x4x6xi1>, tensor<5x4x6xi1>) -> tensor<5x4x6xi1>
  return %0 : tensor<5x4x6xi1>
}

func.func @compare_eq(%x: tensor<5x4x6xf32>, %y: tensor<6xf32>) -> tensor<5x4x6xi1> {
  %0 = mtp.compare eq %x, %y : (tensor<5x4x6xf32>, tensor<6xf32>) -> tensor<5x4x6xi1>
  return %0 : tensor<5x4x6xi1>
}

func.func @compare_ne(%x: tensor<5x4x6xf32>, %y: tensor<6xf32>) -> tensor<5x4x6xi1> {
  %0 = mtp.compare ne %x, %y : (tensor<5x4x6xf32>, tensor<6xf32>) -> tensor<5x4x6xi1>
  return %0 : tensor<5x4x6xi1>
}

func.func @compare_lt(%x: tensor<5x4x6xf32>, %y: tensor<6xf32>) -> tensor<5x4x6xi1> {
  %0 = mtp.compare lt %x, %y : (tensor<5x4x6xf32>, tensor<6xf32>) -> tensor<5x4x6xi1>
  return %0 : tensor<5x4x6xi1>
}

func.func @compare_le(%x: tensor<5x4x6xf32>, %y: tensor<6xf32>) -> tensor<5x4x6xi1> {
  %0 = mtp.compare le %x, %y : (tensor<5x4x6xf32>, tensor<6xf32>) -> tensor<5x4x6xi1>
  return %0 : tensor<5x4x6xi1>
}

func.func @compare_gt(%x: tensor<5x4x6xf32>, %y: tensor<6xf32>) -> tensor<5x4x6xi1> {
  %0 = mtp.compare gt %x, %y : (tensor<5x4x6xf32>, tensor<6xf32>) -> tensor<5x4x6xi1>
  return %0 : tensor<5x4x6xi1>
}

func.func @compare_ge(%x: tensor<5x4x6xf32>, %y: tensor<6xf32>) -> tensor<5x4x6xi1> {
  %0 = mtp.compare ge %x, %y : (tensor<5x4x6xf32>, tensor<6xf32>) -> tensor<5x4x6xi1>
  return %0 : tensor<5x4x6xi1>
}

func.func @select(%c: tensor<5x1x6xi1>, %x: tensor<5x4x6xf32>, %y: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.select %c, %x, %y : (tensor<5x1x6xi1>, tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @convert_widen(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf64> {
  %0 = mtp.convert %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xf64>
  return %0 : tensor<5x4x6xf64>
}

func.func @convert_to_integer(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xi64> {
  %0 = mtp.convert %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xi64>
  return %0 : tensor<5x4x6xi64>
}

func.func @convert_from_integer(%x: tensor<5x4x6xi64>) -> tensor<5x4x6xf32> {
  %0 = mtp.convert %x : (tensor<5x4x6xi64>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @convert_from_boolean(%x: tensor<5x4x6xi1>) -> tensor<5x4x6xf32> {
  %0 = mtp.convert %x : (tensor<5x4x6xi1>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @convert_to_boolean(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xi1> {
  %0 = mtp.convert %x : (tensor<5x4x6xf32>) -> tensor<5x4x6xi1>
  return %0 : tensor<5x4x6xi1>
}

func.func @constant(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %c = mtp.constant dense<0.5> : tensor<6xf32>
  %0 = mtp.mul %x, %c : (tensor<5x4x6xf32>, tensor<6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @iota(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %c = mtp.iota dim 1 : tensor<5x4x6xf32>
  %0 = mtp.add %x, %c : (tensor<5x4x6xf32>, tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @reshape_split(%x: tensor<5x12xf32>) -> tensor<5x4x3xf32> {
  %0 = mtp.reshape %x : (tensor<5x12xf32>) -> tensor<5x4x3xf32>
  return %0 : tensor<5x4x3xf32>
}

func.func @reshape_merge(%x: tensor<5x4x3xf32>) -> tensor<5x12xf32> {
  %0 = mtp.reshape %x : (tensor<5x4x3xf32>) -> tensor<5x12xf32>
  return %0 : tensor<5x12xf32>
}

func.func @reshape_flatten(%x: tensor<5x12xf32>) -> tensor<60xf32> {
  %0 = mtp.reshape %x : (tensor<5x12xf32>) -> tensor<60xf32>
  return %0 : tensor<60xf32>
}

func.func @reshape_unrelated(%x: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %0 = mtp.reshape %x : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

func.func @reshape_squeeze(%x: tensor<5x1x6xf32>) -> tensor<5x6xf32> {
  %0 = mtp.reshape %x : (tensor<5x1x6xf32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}

func.func @reshape_both(%x: tensor<2x3x8xf32>) -> tensor<6x2x4xf32> {
  %0 = mtp.reshape %x : (tensor<2x3x8xf32>) -> tensor<6x2x4xf32>
  return %0 : tensor<6x2x4xf32>
}

func.func @transpose(%x: tensor<5x4x6xf32>) -> tensor<6x5x4xf32> {
  %0 = mtp.transpose %x [2, 0, 1] : (tensor<5x4x6xf32>) -> tensor<6x5x4xf32>
  return %0 : tensor<6x5x4xf32>
}

func.func @broadcast(%x: tensor<4x1xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.broadcast %x : (tensor<4x1xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @strided_slice(%x: tensor<5x4x6xf32>) -> tensor<5x4x2xf32> {
  %0 = mtp.strided_slice %x dim 2 start 1 step 3 : (tensor<5x4x6xf32>) -> tensor<5x4x2xf32>
  return %0 : tensor<5x4x2xf32>
}

func.func @strided_slice_reverse(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.strided_slice %x dim 2 start 5 step -1 : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @concat(%x: tensor<5x4x6xf32>, %y: tensor<5x3x6xf32>) -> tensor<5x7x6xf32> {
  %0 = mtp.concat dim 1 %x, %y : (tensor<5x4x6xf32>, tensor<5x3x6xf32>) -> tensor<5x7x6xf32>
  return %0 : tensor<5x7x6xf32>
}

func.func @pad_zero(%x: tensor<5x4x6xf32>) -> tensor<5x7x6xf32> {
  %0 = mtp.pad %x value 0.0 low [0, 1, 0] high [0, 2, 0] : (tensor<5x4x6xf32>) -> tensor<5x7x6xf32>
  return %0 : tensor<5x7x6xf32>
}

func.func @pad_one(%x: tensor<5x4x6xf32>) -> tensor<5x7x6xf32> {
  %0 = mtp.pad %x value 1.0 low [0, 1, 0] high [0, 2, 0] : (tensor<5x4x6xf32>) -> tensor<5x7x6xf32>
  return %0 : tensor<5x7x6xf32>
}

func.func @gather_rows(%x: tensor<7x6xf32>, %i: tensor<2x5xi64>) -> tensor<2x5x6xf32> {
  %0 = mtp.gather %x[%i] dim 0 : (tensor<7x6xf32>, tensor<2x5xi64>) -> tensor<2x5x6xf32>
  return %0 : tensor<2x5x6xf32>
}

func.func @gather_middle(%x: tensor<5x7x6xf32>, %i: tensor<3xi64>) -> tensor<5x3x6xf32> {
  %0 = mtp.gather %x[%i] dim 1 : (tensor<5x7x6xf32>, tensor<3xi64>) -> tensor<5x3x6xf32>
  return %0 : tensor<5x3x6xf32>
}

func.func @gather_elements(%x: tensor<5x7x6xf32>, %i: tensor<5x3x6xi64>) -> tensor<5x3x6xf32> {
  %0 = mtp.gather_elements %x[%i] dim 1 : (tensor<5x7x6xf32>, tensor<5x3x6xi64>) -> tensor<5x3x6xf32>
  return %0 : tensor<5x3x6xf32>
}

func.func @gather_nd(%x: tensor<5x7x6xf32>, %i: tensor<5x3x1xi64>) -> tensor<5x3x6xf32> {
  %0 = mtp.gather_nd %x[%i] batch_dims 1 : (tensor<5x7x6xf32>, tensor<5x3x1xi64>) -> tensor<5x3x6xf32>
  return %0 : tensor<5x3x6xf32>
}

func.func @gather_nd_tuples(%x: tensor<5x7x6xf32>, %i: tensor<4x3x2xi64>) -> tensor<4x3x6xf32> {
  %0 = mtp.gather_nd %x[%i] batch_dims 0 : (tensor<5x7x6xf32>, tensor<4x3x2xi64>) -> tensor<4x3x6xf32>
  return %0 : tensor<4x3x6xf32>
}

func.func @scatter_elements_none(%x: tensor<5x7x6xf32>, %i: tensor<5x3x6xi64>, %u: tensor<5x3x6xf32>) -> tensor<5x7x6xf32> {
  %0 = mtp.scatter_elements %x[%i], %u dim 1 combine none : (tensor<5x7x6xf32>, tensor<5x3x6xi64>, tensor<5x3x6xf32>) -> tensor<5x7x6xf32>
  return %0 : tensor<5x7x6xf32>
}

func.func @scatter_nd_none(%x: tensor<7x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x6xf32>) -> tensor<7x6xf32> {
  %0 = mtp.scatter_nd %x[%i], %u combine none : (tensor<7x6xf32>, tensor<4x1xi64>, tensor<4x6xf32>) -> tensor<7x6xf32>
  return %0 : tensor<7x6xf32>
}

func.func @scatter_elements_add(%x: tensor<5x7x6xf32>, %i: tensor<5x3x6xi64>, %u: tensor<5x3x6xf32>) -> tensor<5x7x6xf32> {
  %0 = mtp.scatter_elements %x[%i], %u dim 1 combine add : (tensor<5x7x6xf32>, tensor<5x3x6xi64>, tensor<5x3x6xf32>) -> tensor<5x7x6xf32>
  return %0 : tensor<5x7x6xf32>
}

func.func @scatter_nd_add(%x: tensor<7x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x6xf32>) -> tensor<7x6xf32> {
  %0 = mtp.scatter_nd %x[%i], %u combine add : (tensor<7x6xf32>, tensor<4x1xi64>, tensor<4x6xf32>) -> tensor<7x6xf32>
  return %0 : tensor<7x6xf32>
}

func.func @scatter_elements_mul(%x: tensor<5x7x6xf32>, %i: tensor<5x3x6xi64>, %u: tensor<5x3x6xf32>) -> tensor<5x7x6xf32> {
  %0 = mtp.scatter_elements %x[%i], %u dim 1 combine mul : (tensor<5x7x6xf32>, tensor<5x3x6xi64>, tensor<5x3x6xf32>) -> tensor<5x7x6xf32>
  return %0 : tensor<5x7x6xf32>
}

func.func @scatter_nd_mul(%x: tensor<7x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x6xf32>) -> tensor<7x6xf32> {
  %0 = mtp.scatter_nd %x[%i], %u combine mul : (tensor<7x6xf32>, tensor<4x1xi64>, tensor<4x6xf32>) -> tensor<7x6xf32>
  return %0 : tensor<7x6xf32>
}

func.func @scatter_elements_max(%x: tensor<5x7x6xf32>, %i: tensor<5x3x6xi64>, %u: tensor<5x3x6xf32>) -> tensor<5x7x6xf32> {
  %0 = mtp.scatter_elements %x[%i], %u dim 1 combine max : (tensor<5x7x6xf32>, tensor<5x3x6xi64>, tensor<5x3x6xf32>) -> tensor<5x7x6xf32>
  return %0 : tensor<5x7x6xf32>
}

func.func @scatter_nd_max(%x: tensor<7x6xf32>, %i: tensor<4x1xi64>, %u: tensor<4x6xf32>) -> tensor<7x6xf32> {
  %0 = mtp.scatter_nd %x[%i], %u combine max : (tensor<7x6xf32>, tensor<4x1xi64>, tensor<4x6xf32>) -> tensor<7x6xf32>
  return %0 : tensor<7x6xf32>
}

func.func @matmul(%x: tensor<5x4x6xf32>, %w: tensor<6x7xf32>) -> tensor<5x4x7xf32> {
  %0 = mtp.matmul %x, %w : (tensor<5x4x6xf32>, tensor<6x7xf32>) -> tensor<5x4x7xf32>
  return %0 : tensor<5x4x7xf32>
}

func.func @matmul_transpose_rhs(%x: tensor<5x4x6xf32>, %w: tensor<7x6xf32>) -> tensor<5x4x7xf32> {
  %0 = mtp.matmul %x, %w {transpose_rhs} : (tensor<5x4x6xf32>, tensor<7x6xf32>) -> tensor<5x4x7xf32>
  return %0 : tensor<5x4x7xf32>
}

func.func @matmul_transpose_lhs(%x: tensor<5x6x4xf32>, %w: tensor<5x6x7xf32>) -> tensor<5x4x7xf32> {
  %0 = mtp.matmul %x, %w {transpose_lhs} : (tensor<5x6x4xf32>, tensor<5x6x7xf32>) -> tensor<5x4x7xf32>
  return %0 : tensor<5x4x7xf32>
}

func.func @matmul_transpose_both(%x: tensor<5x6x4xf32>, %w: tensor<5x7x6xf32>) -> tensor<5x4x7xf32> {
  %0 = mtp.matmul %x, %w {transpose_lhs, transpose_rhs} : (tensor<5x6x4xf32>, tensor<5x7x6xf32>) -> tensor<5x4x7xf32>
  return %0 : tensor<5x4x7xf32>
}

func.func @matmul_batched(%x: tensor<2x1x4x6xf32>, %w: tensor<2x3x6x5xf32>) -> tensor<2x3x4x5xf32> {
  %0 = mtp.matmul %x, %w : (tensor<2x1x4x6xf32>, tensor<2x3x6x5xf32>) -> tensor<2x3x4x5xf32>
  return %0 : tensor<2x3x4x5xf32>
}

func.func @convolution(%x: tensor<5x3x8x8xf32>, %w: tensor<6x3x3x3xf32>) -> tensor<5x6x4x4xf32> {
  %0 = mtp.convolution %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<5x3x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<5x6x4x4xf32>
  return %0 : tensor<5x6x4x4xf32>
}

func.func @attention(%q: tensor<3x6x5x4xf32>, %k: tensor<3x3x7x4xf32>, %v: tensor<3x3x7x5xf32>) -> (tensor<3x6x5x5xf32>, tensor<3x6x5xf32>) {
  %0, %1 = mtp.attention %q, %k, %v {scale = 0.5 : f64} : (tensor<3x6x5x4xf32>, tensor<3x3x7x4xf32>, tensor<3x3x7x5xf32>) -> (tensor<3x6x5x5xf32>, tensor<3x6x5xf32>)
  return %0, %1 : tensor<3x6x5x5xf32>, tensor<3x6x5xf32>
}

func.func @attention_causal(%q: tensor<3x6x5x4xf32>, %k: tensor<3x3x7x4xf32>, %v: tensor<3x3x7x5xf32>) -> tensor<3x6x5x5xf32> {
  %0, %1 = mtp.attention %q, %k, %v {scale = 0.5 : f64, causal, causal_offset = 1 : i64} : (tensor<3x6x5x4xf32>, tensor<3x3x7x4xf32>, tensor<3x3x7x5xf32>) -> (tensor<3x6x5x5xf32>, tensor<3x6x5xf32>)
  return %0 : tensor<3x6x5x5xf32>
}

func.func @attention_mask(%q: tensor<3x6x5x4xf32>, %k: tensor<3x3x7x4xf32>, %v: tensor<3x3x7x5xf32>, %m: tensor<3x1x5x7xf32>) -> tensor<3x6x5x5xf32> {
  %0, %1 = mtp.attention %q, %k, %v mask %m {scale = 0.5 : f64, softcap = 3.0 : f64} : (tensor<3x6x5x4xf32>, tensor<3x3x7x4xf32>, tensor<3x3x7x5xf32>, tensor<3x1x5x7xf32>) -> (tensor<3x6x5x5xf32>, tensor<3x6x5xf32>)
  return %0 : tensor<3x6x5x5xf32>
}

func.func @attention_boolean_mask(%q: tensor<3x6x5x4xf32>, %k: tensor<3x3x7x4xf32>, %v: tensor<3x3x7x5xf32>, %m: tensor<6x5x7xi1>) -> tensor<3x6x5x5xf32> {
  %0, %1 = mtp.attention %q, %k, %v mask %m {scale = 0.5 : f64, masked_row_zero} : (tensor<3x6x5x4xf32>, tensor<3x3x7x4xf32>, tensor<3x3x7x5xf32>, tensor<6x5x7xi1>) -> (tensor<3x6x5x5xf32>, tensor<3x6x5xf32>)
  return %0 : tensor<3x6x5x5xf32>
}

func.func @attention_uniform_rows(%q: tensor<3x6x5x4xf32>, %k: tensor<3x3x7x4xf32>, %v: tensor<3x3x7x5xf32>, %m: tensor<3x1x1x7xi1>) -> tensor<3x6x5x5xf32> {
  %0, %1 = mtp.attention %q, %k, %v mask %m {scale = 0.5 : f64, causal, masked_row_uniform} : (tensor<3x6x5x4xf32>, tensor<3x3x7x4xf32>, tensor<3x3x7x5xf32>, tensor<3x1x1x7xi1>) -> (tensor<3x6x5x5xf32>, tensor<3x6x5xf32>)
  return %0 : tensor<3x6x5x5xf32>
}

func.func @reduce_sum(%x: tensor<5x4x6xf32>) -> tensor<5x6xf32> {
  %0 = mtp.reduce_sum %x dims [1] : (tensor<5x4x6xf32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}

func.func @reduce_sum_keep(%x: tensor<5x4x6xf32>) -> tensor<1x4x1xf32> {
  %0 = mtp.reduce_sum %x dims [0, 2] {keep} : (tensor<5x4x6xf32>) -> tensor<1x4x1xf32>
  return %0 : tensor<1x4x1xf32>
}

func.func @reduce_max(%x: tensor<5x4x6xf32>) -> tensor<5x6xf32> {
  %0 = mtp.reduce_max %x dims [1] : (tensor<5x4x6xf32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}

func.func @reduce_max_keep(%x: tensor<5x4x6xf32>) -> tensor<1x4x1xf32> {
  %0 = mtp.reduce_max %x dims [0, 2] {keep} : (tensor<5x4x6xf32>) -> tensor<1x4x1xf32>
  return %0 : tensor<1x4x1xf32>
}

func.func @reduce_min(%x: tensor<5x4x6xf32>) -> tensor<5x6xf32> {
  %0 = mtp.reduce_min %x dims [1] : (tensor<5x4x6xf32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}

func.func @reduce_min_keep(%x: tensor<5x4x6xf32>) -> tensor<1x4x1xf32> {
  %0 = mtp.reduce_min %x dims [0, 2] {keep} : (tensor<5x4x6xf32>) -> tensor<1x4x1xf32>
  return %0 : tensor<1x4x1xf32>
}

func.func @reduce_prod(%x: tensor<5x4x6xf32>) -> tensor<5x6xf32> {
  %0 = mtp.reduce_prod %x dims [1] : (tensor<5x4x6xf32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}

func.func @reduce_prod_keep(%x: tensor<5x4x6xf32>) -> tensor<1x4x1xf32> {
  %0 = mtp.reduce_prod %x dims [0, 2] {keep} : (tensor<5x4x6xf32>) -> tensor<1x4x1xf32>
  return %0 : tensor<1x4x1xf32>
}

func.func @reduce_sum_integers(%x: tensor<5x4x6xi64>) -> tensor<5x6xi64> {
  %0 = mtp.reduce_sum %x dims [1] : (tensor<5x4x6xi64>) -> tensor<5x6xi64>
  return %0 : tensor<5x6xi64>
}

func.func @reduce_max_integers(%x: tensor<5x4x6xi64>) -> tensor<5x6xi64> {
  %0 = mtp.reduce_max %x dims [1] : (tensor<5x4x6xi64>) -> tensor<5x6xi64>
  return %0 : tensor<5x6xi64>
}

func.func @reduce_min_integers(%x: tensor<5x4x6xi64>) -> tensor<5x6xi64> {
  %0 = mtp.reduce_min %x dims [1] : (tensor<5x4x6xi64>) -> tensor<5x6xi64>
  return %0 : tensor<5x6xi64>
}

func.func @argmax(%x: tensor<5x4x6xf32>) -> tensor<5x6xi64> {
  %0 = mtp.argmax %x dim 1 : (tensor<5x4x6xf32>) -> tensor<5x6xi64>
  return %0 : tensor<5x6xi64>
}

func.func @argmin(%x: tensor<5x4x6xf32>) -> tensor<5x6xi64> {
  %0 = mtp.argmin %x dim 1 : (tensor<5x4x6xf32>) -> tensor<5x6xi64>
  return %0 : tensor<5x6xi64>
}

func.func @topk(%x: tensor<5x4x6xf32>) -> (tensor<5x4x3xf32>, tensor<5x4x3xi64>) {
  %0, %1 = mtp.topk %x dim 2 : (tensor<5x4x6xf32>) -> (tensor<5x4x3xf32>, tensor<5x4x3xi64>)
  return %0, %1 : tensor<5x4x3xf32>, tensor<5x4x3xi64>
}

func.func @cumsum(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.cumsum %x dim 1 : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @cumsum_reverse(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.cumsum %x dim 2 {exclusive, reverse} : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @softmax(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.softmax %x dim 2 : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @softmax_middle(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.softmax %x dim 1 : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @log_softmax(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.log_softmax %x dim 2 : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @log_softmax_middle(%x: tensor<5x4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.log_softmax %x dim 1 : (tensor<5x4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @layer_norm(%x: tensor<5x4x6xf32>, %g: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64} : (tensor<5x4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @layer_norm_two_dims(%x: tensor<5x4x6xf32>, %g: tensor<4x6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.layer_norm %x, %g {epsilon = 1.0e-5 : f64} : (tensor<5x4x6xf32>, tensor<4x6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @rms_norm(%x: tensor<5x4x6xf32>, %g: tensor<6xf32>) -> tensor<5x4x6xf32> {
  %0 = mtp.rms_norm %x, %g {epsilon = 1.0e-5 : f64} : (tensor<5x4x6xf32>, tensor<6xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @rotary(%x: tensor<3x2x5x6xf32>, %c: tensor<1x5x2xf32>, %s: tensor<1x5x2xf32>) -> tensor<3x2x5x6xf32> {
  %0 = mtp.rotary %x, %c, %s : (tensor<3x2x5x6xf32>, tensor<1x5x2xf32>, tensor<1x5x2xf32>) -> tensor<3x2x5x6xf32>
  return %0 : tensor<3x2x5x6xf32>
}

func.func @rotary_interleaved(%x: tensor<3x2x5x6xf32>, %c: tensor<3x1x5x3xf32>, %s: tensor<3x1x5x3xf32>) -> tensor<3x2x5x6xf32> {
  %0 = mtp.rotary %x, %c, %s {interleaved} : (tensor<3x2x5x6xf32>, tensor<3x1x5x3xf32>, tensor<3x1x5x3xf32>) -> tensor<3x2x5x6xf32>
  return %0 : tensor<3x2x5x6xf32>
}

func.func @reshape_integers(%x: tensor<5x4x3xi64>) -> tensor<5x12xi64> {
  %0 = mtp.reshape %x : (tensor<5x4x3xi64>) -> tensor<5x12xi64>
  return %0 : tensor<5x12xi64>
}

func.func @transpose_integers(%x: tensor<5x4x6xi64>) -> tensor<6x5x4xi64> {
  %0 = mtp.transpose %x [2, 0, 1] : (tensor<5x4x6xi64>) -> tensor<6x5x4xi64>
  return %0 : tensor<6x5x4xi64>
}

func.func @broadcast_integers(%x: tensor<4x1xi64>) -> tensor<5x4x6xi64> {
  %0 = mtp.broadcast %x : (tensor<4x1xi64>) -> tensor<5x4x6xi64>
  return %0 : tensor<5x4x6xi64>
}

func.func @strided_slice_integers(%x: tensor<5x4x6xi64>) -> tensor<5x4x2xi64> {
  %0 = mtp.strided_slice %x dim 2 start 1 step 3 : (tensor<5x4x6xi64>) -> tensor<5x4x2xi64>
  return %0 : tensor<5x4x2xi64>
}

func.func @concat_integers(%x: tensor<5x4x6xi64>, %y: tensor<5x3x6xi64>) -> tensor<5x7x6xi64> {
  %0 = mtp.concat dim 1 %x, %y : (tensor<5x4x6xi64>, tensor<5x3x6xi64>) -> tensor<5x7x6xi64>
  return %0 : tensor<5x7x6xi64>
}

func.func @gather_integers(%x: tensor<7x6xi64>, %i: tensor<2x5xi64>) -> tensor<2x5x6xi64> {
  %0 = mtp.gather %x[%i] dim 0 : (tensor<7x6xi64>, tensor<2x5xi64>) -> tensor<2x5x6xi64>
  return %0 : tensor<2x5x6xi64>
}

func.func @gather_booleans(%x: tensor<7x6xi1>, %i: tensor<2x5xi64>) -> tensor<2x5x6xi1> {
  %0 = mtp.gather %x[%i] dim 0 : (tensor<7x6xi1>, tensor<2x5xi64>) -> tensor<2x5x6xi1>
  return %0 : tensor<2x5x6xi1>
}

func.func @select_integers(%c: tensor<5x1x6xi1>, %x: tensor<5x4x6xi64>, %y: tensor<5x4x6xi64>) -> tensor<5x4x6xi64> {
  %0 = mtp.select %c, %x, %y : (tensor<5x1x6xi1>, tensor<5x4x6xi64>, tensor<5x4x6xi64>) -> tensor<5x4x6xi64>
  return %0 : tensor<5x4x6xi64>
}

func.func @reduce_max_booleans(%x: tensor<5x4x6xi1>) -> tensor<5x6xi1> {
  %0 = mtp.reduce_max %x dims [1] : (tensor<5x4x6xi1>) -> tensor<5x6xi1>
  return %0 : tensor<5x6xi1>
}

func.func @reduce_min_booleans(%x: tensor<5x4x6xi1>) -> tensor<5x6xi1> {
  %0 = mtp.reduce_min %x dims [1] : (tensor<5x4x6xi1>) -> tensor<5x6xi1>
  return %0 : tensor<5x6xi1>
}

func.func @convolution_groups(%x: tensor<5x4x8xf32>, %w: tensor<6x2x3xf32>) -> tensor<5x6x6xf32> {
  %0 = mtp.convolution %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, groups = 2 : i64} : (tensor<5x4x8xf32>, tensor<6x2x3xf32>) -> tensor<5x6x6xf32>
  return %0 : tensor<5x6x6xf32>
}

func.func @attention_one_key_head(%q: tensor<3x4x5x4xf32>, %k: tensor<3x1x7x4xf32>, %v: tensor<3x1x7x5xf32>) -> (tensor<3x4x5x5xf32>, tensor<3x4x5xf32>) {
  %0, %1 = mtp.attention %q, %k, %v {scale = 0.5 : f64, causal} : (tensor<3x4x5x4xf32>, tensor<3x1x7x4xf32>, tensor<3x1x7x5xf32>) -> (tensor<3x4x5x5xf32>, tensor<3x4x5xf32>)
  return %0, %1 : tensor<3x4x5x5xf32>, tensor<3x4x5xf32>
}

func.func @attention_query_start(%q: tensor<3x6x5x4xf32>, %k: tensor<3x3x7x4xf32>, %v: tensor<3x3x7x5xf32>, %s: tensor<i64>) -> (tensor<3x6x5x5xf32>, tensor<3x6x5xf32>) {
  %0, %1 = mtp.attention %q, %k, %v query_start %s {scale = 0.5 : f64, causal, masked_row_zero} : (tensor<3x6x5x4xf32>, tensor<3x3x7x4xf32>, tensor<3x3x7x5xf32>, tensor<i64>) -> (tensor<3x6x5x5xf32>, tensor<3x6x5xf32>)
  return %0, %1 : tensor<3x6x5x5xf32>, tensor<3x6x5xf32>
}

func.func @topk_smallest(%x: tensor<5x4x6xf32>) -> tensor<5x2x6xf32> {
  %0, %1 = mtp.topk %x dim 1 {smallest} : (tensor<5x4x6xf32>) -> (tensor<5x2x6xf32>, tensor<5x2x6xi64>)
  return %0 : tensor<5x2x6xf32>
}

func.func @argmax_last(%x: tensor<5x4x6xi64>) -> tensor<5x6xi64> {
  %0 = mtp.argmax %x dim 1 {last} : (tensor<5x4x6xi64>) -> tensor<5x6xi64>
  return %0 : tensor<5x6xi64>
}

// Sources: any state but partial.
func.func @constant_splat() -> tensor<5x4x6xf32> {
  %0 = mtp.constant dense<0.5> : tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @constant_elements() -> tensor<3xf32> {
  %0 = mtp.constant dense<[0.5, -1.0, 2.0]> : tensor<3xf32>
  return %0 : tensor<3xf32>
}

func.func @iota_first() -> tensor<5x4x6xf32> {
  %0 = mtp.iota dim 0 : tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}

func.func @iota_integers() -> tensor<5x4x6xi64> {
  %0 = mtp.iota dim 2 : tensor<5x4x6xi64>
  return %0 : tensor<5x4x6xi64>
}

mtp.initializer @weight : tensor<5x6xf32> {parameter, value = dense<[[-1.05, 0.18, -0.52, 0.42, 0.50, -1.74], [-1.95, 1.35, -0.96, -1.06, 1.98, -0.12], [1.35, -0.09, 0.56, -1.40, 0.54, 1.47], [0.09, 0.97, 0.69, -1.74, 1.03, 0.36], [-0.79, -1.88, 1.46, -0.11, 0.88, 1.52]]> : tensor<5x6xf32>}

func.func @parameter() -> tensor<5x6xf32> {
  %0 = mtp.parameter @weight : tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}

func.func @parameter_recipe() -> tensor<5x4xf32> {
  %0 = mtp.parameter @weight recipe [#mtp.step<"slice", [1, 1, 4]>] : tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}

// What every change of layout is tried on.
func.func @conversions(%x: tensor<5x4x6xf32>, %i: tensor<5x4x6xi64>, %b: tensor<5x4x6xi1>) {
  return
}
