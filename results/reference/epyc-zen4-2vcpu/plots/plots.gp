# Draws the plots of this folder again: gnuplot plots.gp
set encoding utf8

$line0 << END
 1024 0.228897581 0.222870842 0.230411486
 2048 0.225644296 0.209170215 0.22696121
END
$line1 << END
 1024 0.208108863 0.168670343 0.212003304
 2048 0.21134 0.195016843 0.213083715
END
$line2 << END
 2048 0.451277302 0.445686489 0.453118411
END
$line3 << END
 1024 0.105696036 0.0998316933 0.107155852
END
set terminal svg dynamic noenhanced size 800,500 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
set output 'gemm-throughput.svg'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'm = n = k'
set ylabel 'throughput (TFLOP/s)'
set ytics nomirror
set yrange [0:0.51070882]
set xtics nomirror ('1024' 1024, '2048' 2048)
set xrange [1003.52:2068.48]
set title 'gemm throughput: threads 2'
set key below left Left reverse samplen 3 width 1
set arrow from graph 0, first 0.236438415 to graph 1, first 0.236438415 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 0.2364' at graph 0.99, first 0.236438415 right offset 0,0.5 tc rgb '#808080'
set arrow from graph 0, first 0.472878537 to graph 1, first 0.472878537 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 0.4729' at graph 0.99, first 0.472878537 right offset 0,0.5 tc rgb '#808080'
set arrow from graph 0, first 0.118218781 to graph 1, first 0.118218781 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 0.1182' at graph 0.99, first 0.118218781 right offset 0,0.5 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'f32, onednn', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'f32, openblas', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'bf16, onednn', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'f64, openblas'
unset output

set terminal pngcairo noenhanced size 1600,1000 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
set output 'gemm-throughput.png'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'm = n = k'
set ylabel 'throughput (TFLOP/s)'
set ytics nomirror
set yrange [0:0.51070882]
set xtics nomirror ('1024' 1024, '2048' 2048)
set xrange [1003.52:2068.48]
set title 'gemm throughput: threads 2'
set key below left Left reverse samplen 3 width 1
set arrow from graph 0, first 0.236438415 to graph 1, first 0.236438415 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 0.2364' at graph 0.99, first 0.236438415 right offset 0,0.5 tc rgb '#808080'
set arrow from graph 0, first 0.472878537 to graph 1, first 0.472878537 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 0.4729' at graph 0.99, first 0.472878537 right offset 0,0.5 tc rgb '#808080'
set arrow from graph 0, first 0.118218781 to graph 1, first 0.118218781 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 0.1182' at graph 0.99, first 0.118218781 right offset 0,0.5 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'f32, onednn', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'f32, openblas', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'bf16, onednn', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'f64, openblas'
unset output

$line0 << END
 16384 652.08841 645.622318 657.180628
 32768 655.622218 650.908343 658.41621
 65536 657.289632 643.654991 659.554057
 131072 226.279983 224.261392 226.669008
 262144 225.877833 223.440413 226.212631
 524288 233.661865 231.335812 234.013785
 1048576 231.341307 225.004816 233.914863
 2097152 200.708517 198.765113 201.641525
 4194304 198.206077 196.831633 200.266774
 8388608 198.641646 196.697823 199.886503
 16777216 193.276656 191.080922 196.98639
 33554432 118.131794 93.4629552 121.456701
 67108864 59.5494219 55.5288737 114.787555
 134217728 43.7942799 41.796481 44.783021
END
$line1 << END
 134217728 43.7535339 39.8777685 71.1989955
END
$line2 << END
 134217728 31.9363603 25.009774 71.3360982
END
$line3 << END
 134217728 42.988989 40.7013007 44.5379623
END
$line4 << END
 134217728 58.4222731 39.7370365 65.2390613
END
set terminal svg dynamic noenhanced size 800,500 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
set output 'memory-bandwidth.svg'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'bandwidth (GB/s)'
set ytics nomirror
set logscale x 2
set format x '%g'
set yrange [0:*]
set xtics nomirror ('16K' 16384, '64K' 65536, '256K' 262144, '1M' 1048576, '4M' 4194304, '16M' 16777216, '128M' 134217728)
set xrange [13682.0805:160722871]
set title 'memory bandwidth: dtype f64, pages thp, threads 2, node any, memory_node local, isa avx2' offset 0,1.2
set key below left Left reverse samplen 3 width 1
set arrow from first 65536, graph 0 to first 65536, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 2x32K' at first 65536, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 2097152, graph 0 to first 2097152, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L2 2x1M' at first 2097152, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 33554432, graph 0 to first 33554432, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L3 32M' at first 33554432, graph 1 center offset 0,0.6 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'triad, regular', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'read', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#009e73' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 9 ps 0.7 lc rgb '#009e73' title 'write, regular', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'copy, regular', $line4 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line4 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'triad, nt'
unset output

set terminal pngcairo noenhanced size 1600,1000 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
set output 'memory-bandwidth.png'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'bandwidth (GB/s)'
set ytics nomirror
set logscale x 2
set format x '%g'
set yrange [0:*]
set xtics nomirror ('16K' 16384, '64K' 65536, '256K' 262144, '1M' 1048576, '4M' 4194304, '16M' 16777216, '128M' 134217728)
set xrange [13682.0805:160722871]
set title 'memory bandwidth: dtype f64, pages thp, threads 2, node any, memory_node local, isa avx2' offset 0,1.2
set key below left Left reverse samplen 3 width 1
set arrow from first 65536, graph 0 to first 65536, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 2x32K' at first 65536, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 2097152, graph 0 to first 2097152, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L2 2x1M' at first 2097152, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 33554432, graph 0 to first 33554432, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L3 32M' at first 33554432, graph 1 center offset 0,0.6 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'triad, regular', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'read', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#009e73' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 9 ps 0.7 lc rgb '#009e73' title 'write, regular', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'copy, regular', $line4 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line4 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'triad, nt'
unset output

$line0 << END
 16384 1.08597482 1.08278218 1.09621085
 32768 1.16356026 1.14502064 1.23535446
 65536 3.80522876 3.79489291 3.83240993
 131072 3.81522863 3.80860793 3.82817537
 262144 3.82430348 3.81727787 3.86146335
 524288 5.1026991 5.06347531 6.00235809
 1048576 8.22977393 8.09861702 9.08236931
 2097152 13.3482965 13.1735036 13.4555257
 4194304 15.1173507 14.7231244 15.3715113
 8388608 17.89729 15.8011426 123.921786
 16777216 99.9709942 32.408665 174.807908
 33554432 131.694603 92.8640885 183.91992
 67108864 144.992443 139.995843 147.911542
 134217728 149.51391 143.137741 162.772823
END
set terminal svg dynamic noenhanced size 800,480 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
set output 'memory-latency.svg'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'latency (ns)'
set ytics nomirror
set logscale x 2
set format x '%g'
set logscale y 10
set format y '%g'
set yrange [*:*]
set xtics nomirror ('16K' 16384, '64K' 65536, '256K' 262144, '1M' 1048576, '4M' 4194304, '16M' 16777216, '128M' 134217728)
set xrange [13682.0805:160722871]
set title 'memory latency: op latency, pages thp, threads 1, node any, memory_node local' offset 0,1.2
unset key
set arrow from first 32768, graph 0 to first 32768, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 32K' at first 32768, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 1048576, graph 0 to first 1048576, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L2 1M' at first 1048576, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 33554432, graph 0 to first 33554432, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L3 32M' at first 33554432, graph 1 center offset 0,0.6 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'latency'
unset output

set terminal pngcairo noenhanced size 1600,960 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
set output 'memory-latency.png'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'latency (ns)'
set ytics nomirror
set logscale x 2
set format x '%g'
set logscale y 10
set format y '%g'
set yrange [*:*]
set xtics nomirror ('16K' 16384, '64K' 65536, '256K' 262144, '1M' 1048576, '4M' 4194304, '16M' 16777216, '128M' 134217728)
set xrange [13682.0805:160722871]
set title 'memory latency: op latency, pages thp, threads 1, node any, memory_node local' offset 0,1.2
unset key
set arrow from first 32768, graph 0 to first 32768, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 32K' at first 32768, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 1048576, graph 0 to first 1048576, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L2 1M' at first 1048576, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 33554432, graph 0 to first 33554432, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L3 32M' at first 33554432, graph 1 center offset 0,0.6 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'latency'
unset output

$line0 << END
 0 48.3791618 47.8885112 48.6044377
 1 17.853003 4.67037187 29.7807064
 2 3.0961745 2.05670484 3.72192255
 3 13.192148 13.0930759 13.2890887
 4 16.7823114 16.2774435 17.000754
 5 16.7582894 16.4366985 16.9676002
 6 33.5151616 32.5188607 33.9352005
END
set terminal svg dynamic noenhanced size 800,260 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
set output 'copy-bandwidth.svg'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'bandwidth (GB/s)'
set ylabel ''
set ytics nomirror
set xrange [0:*]
set ytics nomirror ('memcpy, one-way' 0, 'shm, one-way' 1, 'pipe, one-way' 2, 'cma, one-way' 3, 'shm, forward' 4, 'shm, reverse' 5, 'shm, sum' 6)
set yrange [6.4:-0.5]
set xtics nomirror
set title 'copy bandwidth: source node0, destination node0, memory pageable, size 1M'
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'bandwidth'
unset output

set terminal pngcairo noenhanced size 1600,520 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
set output 'copy-bandwidth.png'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'bandwidth (GB/s)'
set ylabel ''
set ytics nomirror
set xrange [0:*]
set ytics nomirror ('memcpy, one-way' 0, 'shm, one-way' 1, 'pipe, one-way' 2, 'cma, one-way' 3, 'shm, forward' 4, 'shm, reverse' 5, 'shm, sum' 6)
set yrange [6.4:-0.5]
set xtics nomirror
set title 'copy bandwidth: source node0, destination node0, memory pageable, size 1M'
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'bandwidth'
unset output

