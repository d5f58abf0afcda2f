# Draws the plots of this folder again: gnuplot plots.gp
set encoding utf8

$line0 << END
 1024 0.227799333 0.221930571 0.233823289
 2048 0.225902408 0.22429579 0.227520534
END
$line1 << END
 1024 0.208183537 0.205781393 0.210613723
 2048 0.206242355 0.183849611 0.231362518
END
$line2 << END
 2048 0.450357763 0.445400067 0.455370642
END
$line3 << END
 1024 0.105576884 0.104539032 0.106625039
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
set yrange [0:*]
set xtics nomirror ('1024' 1024, '2048' 2048)
set xrange [1003.52:2068.48]
set title 'gemm throughput: threads 2'
set tmargin 3
set key below left Left reverse samplen 3 width 1 height 1.5
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
set yrange [0:*]
set xtics nomirror ('1024' 1024, '2048' 2048)
set xrange [1003.52:2068.48]
set title 'gemm throughput: threads 2'
set tmargin 3
set key below left Left reverse samplen 3 width 1 height 1.5
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'f32, onednn', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'f32, openblas', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'bf16, onednn', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'f64, openblas'
unset output

$line0 << END
 16384 651.566666 646.083408 657.096461
 32768 655.45675 651.487592 659.45009
 65536 654.653975 643.168329 666.344731
 131072 226.30242 225.939874 226.665547
 262144 225.810765 225.34012 226.282393
 524288 233.705637 233.355925 234.055873
 1048576 230.643447 222.911574 238.643508
 2097152 200.666959 199.988164 201.348058
 4194304 198.454177 196.565162 200.361345
 8388608 198.648549 197.376809 199.928484
 16777216 193.706744 190.572636 196.892394
 33554432 117.257377 111.981107 122.782251
 67108864 72.3608092 29.5539419 177.170502
 134217728 43.5584541 41.8351748 45.3527188
END
$line1 << END
 134217728 50.4231483 24.9472361 101.914853
END
$line2 << END
 134217728 40.4250113 14.2567597 114.625032
END
$line3 << END
 134217728 42.9161392 40.6694826 45.2869052
END
$line4 << END
 134217728 58.9225832 56.7373768 61.1919516
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
set title 'memory bandwidth: dtype f64, pages thp, threads 2, node any, memory_node local, isa avx2' offset 0,1.6
set tmargin 5
set key below left Left reverse samplen 3 width 1 height 1.5
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
set title 'memory bandwidth: dtype f64, pages thp, threads 2, node any, memory_node local, isa avx2' offset 0,1.6
set tmargin 5
set key below left Left reverse samplen 3 width 1 height 1.5
set arrow from first 65536, graph 0 to first 65536, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 2x32K' at first 65536, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 2097152, graph 0 to first 2097152, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L2 2x1M' at first 2097152, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 33554432, graph 0 to first 33554432, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L3 32M' at first 33554432, graph 1 center offset 0,0.6 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'triad, regular', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'read', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#009e73' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 9 ps 0.7 lc rgb '#009e73' title 'write, regular', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'copy, regular', $line4 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line4 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'triad, nt'
unset output

$line0 << END
 16384 1.08545437 1.08178445 1.08913673
 32768 1.18343164 1.0854037 1.29031295
 65536 3.80541167 3.79850414 3.81233177
 131072 3.81541302 3.80899591 3.82184094
 262144 3.82780799 3.8063232 3.84941404
 524288 5.33026036 4.36853116 6.5037136
 1048576 8.46307293 7.36255218 9.7280945
 2097152 13.3339485 13.2282048 13.4405375
 4194304 15.0463948 14.487333 15.6270306
 8388608 18.0976232 15.3927272 21.2778388
 16777216 89.8096256 45.5499364 177.075304
 33554432 133.108475 124.077391 142.796895
 67108864 144.42351 139.514535 149.505213
 134217728 150.548703 142.448243 159.109803
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
set title 'memory latency: op latency, pages thp, threads 1, node any, memory_node local' offset 0,1.6
set tmargin 5
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
set title 'memory latency: op latency, pages thp, threads 1, node any, memory_node local' offset 0,1.6
set tmargin 5
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
 0 48.3449466 47.9653261 48.7275716
 1 13.3671063 1.32123949 135.236293
 2 3.14338621 2.92127316 3.38238717
 3 13.1837565 13.0904492 13.2777288
 4 16.7687501 16.3277187 17.2216943
 5 16.7610674 16.3678584 17.1637225
 6 33.4954519 32.6135699 34.4011802
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
set xtics nomirror 20
set title 'copy bandwidth: source node0, destination node0, memory pageable, size 1M'
set tmargin 3
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
set xtics nomirror 20
set title 'copy bandwidth: source node0, destination node0, memory pageable, size 1M'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'bandwidth'
unset output

