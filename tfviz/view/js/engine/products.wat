;; Products of matrices of 32-bit floats, eight columns at a time: c = a b + bias.
;;
;; A panel is eight columns of b. Where the kernel is called, places and distances count floats: the next row of a panel
;; begins `row_stride` floats on, the next panel `panel_stride`. So b may be row-major (its columns, and 8), or each panel
;; may be in one piece (8, and 8 times its rows), which caches like better where b is large.
;; a and c are row-major. Inside, everything is in bytes.
;;
;; The last panel may be narrower than eight columns. It is computed like the others: what is read past it counts for
;; nothing, and what is written past it is overwritten, because panels go from the last to the first and rows from the
;; first to the last. So eight floats have to be there behind each of b, bias and c; those behind c are lost. There is
;; at least one row and one column.
(module
  (memory (export "memory") 1)

  (func (export "product")
    (param $a i32) (param $b i32) (param $bias i32) (param $c i32)
    (param $rows i32) (param $inner i32) (param $columns i32) (param $row_stride i32) (param $panel_stride i32)
    (local $index i32) ;; of the panel that is computed
    (local.set $index (i32.shr_u (i32.add (local.get $columns) (i32.const 7)) (i32.const 3)))
    (loop $each_panel
      (local.set $index (i32.sub (local.get $index) (i32.const 1)))
      (call $panel
        (i32.shl (local.get $a) (i32.const 2))
        (i32.shl (i32.add (local.get $b) (i32.mul (local.get $index) (local.get $panel_stride))) (i32.const 2))
        (i32.shl (i32.add (local.get $bias) (i32.shl (local.get $index) (i32.const 3))) (i32.const 2))
        (i32.shl (i32.add (local.get $c) (i32.shl (local.get $index) (i32.const 3))) (i32.const 2))
        (local.get $rows)
        (i32.shl (local.get $inner) (i32.const 2))
        (i32.shl (local.get $columns) (i32.const 2))
        (i32.shl (local.get $row_stride) (i32.const 2)))
      (br_if $each_panel (local.get $index))))

  ;; All rows of one panel: four at a time, then those left over.
  (func $panel
    (param $a i32) (param $b i32) (param $bias i32) (param $c i32)
    (param $rows i32) (param $a_stride i32) (param $c_stride i32) (param $row_stride i32)
    (block $rest
      (loop $by_four
        (br_if $rest (i32.lt_u (local.get $rows) (i32.const 4)))
        (call $four_rows
          (local.get $a) (local.get $b) (local.get $bias) (local.get $c)
          (local.get $a_stride) (local.get $c_stride) (local.get $row_stride))
        (local.set $a (i32.add (local.get $a) (i32.shl (local.get $a_stride) (i32.const 2))))
        (local.set $c (i32.add (local.get $c) (i32.shl (local.get $c_stride) (i32.const 2))))
        (local.set $rows (i32.sub (local.get $rows) (i32.const 4)))
        (br $by_four)))
    (block $end_rows
      (loop $by_one
        (br_if $end_rows (i32.eqz (local.get $rows)))
        (call $one_row
          (local.get $a) (local.get $b) (local.get $bias) (local.get $c)
          (local.get $a_stride) (local.get $row_stride))
        (local.set $a (i32.add (local.get $a) (local.get $a_stride)))
        (local.set $c (i32.add (local.get $c) (local.get $c_stride)))
        (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
        (br $by_one))))

  ;; Four rows by eight columns: eight sums of four numbers stay in registers.
  (func $four_rows
    (param $a i32) (param $b i32) (param $bias i32) (param $c i32)
    (param $a_stride i32) (param $c_stride i32) (param $row_stride i32)
    (local $a1 i32) (local $a2 i32) (local $a3 i32) (local $end i32)
    (local $left v128) (local $right v128) (local $x v128) ;; of b: four columns and the next four; of a: one number
    (local $l0 v128) (local $r0 v128) (local $l1 v128) (local $r1 v128)
    (local $l2 v128) (local $r2 v128) (local $l3 v128) (local $r3 v128)
    (local.set $end (i32.add (local.get $a) (local.get $a_stride)))
    (local.set $a1 (local.get $end))
    (local.set $a2 (i32.add (local.get $a1) (local.get $a_stride)))
    (local.set $a3 (i32.add (local.get $a2) (local.get $a_stride)))
    (local.set $l0 (v128.load (local.get $bias)))
    (local.set $r0 (v128.load offset=16 (local.get $bias)))
    (local.set $l1 (local.get $l0)) (local.set $r1 (local.get $r0))
    (local.set $l2 (local.get $l0)) (local.set $r2 (local.get $r0))
    (local.set $l3 (local.get $l0)) (local.set $r3 (local.get $r0))
    (block $done
      (loop $inner
        (br_if $done (i32.eq (local.get $a) (local.get $end)))
        (local.set $left (v128.load (local.get $b)))
        (local.set $right (v128.load offset=16 (local.get $b)))
        (local.set $x (v128.load32_splat (local.get $a)))
        (local.set $l0 (f32x4.add (local.get $l0) (f32x4.mul (local.get $x) (local.get $left))))
        (local.set $r0 (f32x4.add (local.get $r0) (f32x4.mul (local.get $x) (local.get $right))))
        (local.set $x (v128.load32_splat (local.get $a1)))
        (local.set $l1 (f32x4.add (local.get $l1) (f32x4.mul (local.get $x) (local.get $left))))
        (local.set $r1 (f32x4.add (local.get $r1) (f32x4.mul (local.get $x) (local.get $right))))
        (local.set $x (v128.load32_splat (local.get $a2)))
        (local.set $l2 (f32x4.add (local.get $l2) (f32x4.mul (local.get $x) (local.get $left))))
        (local.set $r2 (f32x4.add (local.get $r2) (f32x4.mul (local.get $x) (local.get $right))))
        (local.set $x (v128.load32_splat (local.get $a3)))
        (local.set $l3 (f32x4.add (local.get $l3) (f32x4.mul (local.get $x) (local.get $left))))
        (local.set $r3 (f32x4.add (local.get $r3) (f32x4.mul (local.get $x) (local.get $right))))
        (local.set $a (i32.add (local.get $a) (i32.const 4)))
        (local.set $a1 (i32.add (local.get $a1) (i32.const 4)))
        (local.set $a2 (i32.add (local.get $a2) (i32.const 4)))
        (local.set $a3 (i32.add (local.get $a3) (i32.const 4)))
        (local.set $b (i32.add (local.get $b) (local.get $row_stride)))
        (br $inner)))
    (v128.store (local.get $c) (local.get $l0))
    (v128.store offset=16 (local.get $c) (local.get $r0))
    (local.set $c (i32.add (local.get $c) (local.get $c_stride)))
    (v128.store (local.get $c) (local.get $l1))
    (v128.store offset=16 (local.get $c) (local.get $r1))
    (local.set $c (i32.add (local.get $c) (local.get $c_stride)))
    (v128.store (local.get $c) (local.get $l2))
    (v128.store offset=16 (local.get $c) (local.get $r2))
    (local.set $c (i32.add (local.get $c) (local.get $c_stride)))
    (v128.store (local.get $c) (local.get $l3))
    (v128.store offset=16 (local.get $c) (local.get $r3)))

  ;; One row by eight columns.
  (func $one_row
    (param $a i32) (param $b i32) (param $bias i32) (param $c i32) (param $a_stride i32) (param $row_stride i32)
    (local $end i32) (local $x v128) (local $left v128) (local $right v128)
    (local.set $end (i32.add (local.get $a) (local.get $a_stride)))
    (local.set $left (v128.load (local.get $bias)))
    (local.set $right (v128.load offset=16 (local.get $bias)))
    (block $done
      (loop $inner
        (br_if $done (i32.eq (local.get $a) (local.get $end)))
        (local.set $x (v128.load32_splat (local.get $a)))
        (local.set $left (f32x4.add (local.get $left) (f32x4.mul (local.get $x) (v128.load (local.get $b)))))
        (local.set $right
          (f32x4.add (local.get $right) (f32x4.mul (local.get $x) (v128.load offset=16 (local.get $b)))))
        (local.set $a (i32.add (local.get $a) (i32.const 4)))
        (local.set $b (i32.add (local.get $b) (local.get $row_stride)))
        (br $inner)))
    (v128.store (local.get $c) (local.get $left))
    (v128.store offset=16 (local.get $c) (local.get $right))))
