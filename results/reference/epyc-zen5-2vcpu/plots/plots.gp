# Draws the plots of this folder again: gnuplot plots.gp
set encoding utf8

$line0 << END
 1024 0.449761055 0.431520041 0.468114485
 2048 0.452465973 0.430487141 0.470330072
END
$line1 << END
 1024 0.375338598 0.296357846 0.446853591
 2048 0.415768483 0.393388523 0.44009789
END
$line2 << END
 2048 0.886645977 0.860435096 0.913069025
END
$line3 << END
 1024 0.178153792 0.158213529 0.194776914
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
set title 'gemm throughput: device host, data random, threads 2'
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
set title 'gemm throughput: device host, data random, threads 2'
set tmargin 3
set key below left Left reverse samplen 3 width 1 height 1.5
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'f32, onednn', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'f32, openblas', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'bf16, onednn', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'f64, openblas'
unset output

$line0 << END
 32768 1064.1207 851.759585 1329.42779
 524288 337.204291 282.429094 393.500772
 8388608 172.445221 122.352684 223.200715
 134217728 40.8404264 31.7005877 52.6154417
END
$line1 << END
 134217728 47.2324208 38.4187812 58.0679946
END
$line2 << END
 134217728 30.5891338 25.264239 39.784868
END
$line3 << END
 134217728 36.0770884 31.6842531 40.8818974
END
$line4 << END
 134217728 50.4629291 34.19319 72.1651701
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
set logscale y 10
set format y '%g'
set yrange [*:*]
set xtics nomirror ('32K' 32768, '512K' 524288, '8M' 8388608, '128M' 134217728)
set xrange [27746.1504:158510152]
set title 'memory bandwidth: device host, dtype f64, pages thp, threads 2, node any, memory_node local, isa avx512' offset 0,1.6
set tmargin 5
set key below left Left reverse samplen 3 width 1 height 1.5
set arrow from first 98304, graph 0 to first 98304, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 2x48K' at first 98304, graph 1 center offset 0,0.6 tc rgb '#808080'
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
set logscale y 10
set format y '%g'
set yrange [*:*]
set xtics nomirror ('32K' 32768, '512K' 524288, '8M' 8388608, '128M' 134217728)
set xrange [27746.1504:158510152]
set title 'memory bandwidth: device host, dtype f64, pages thp, threads 2, node any, memory_node local, isa avx512' offset 0,1.6
set tmargin 5
set key below left Left reverse samplen 3 width 1 height 1.5
set arrow from first 98304, graph 0 to first 98304, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 2x48K' at first 98304, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 2097152, graph 0 to first 2097152, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L2 2x1M' at first 2097152, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 33554432, graph 0 to first 33554432, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L3 32M' at first 33554432, graph 1 center offset 0,0.6 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'triad, regular', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'read', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#009e73' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 9 ps 0.7 lc rgb '#009e73' title 'write, regular', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'copy, regular', $line4 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line4 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'triad, nt'
unset output

$line0 << END
 32768 1.02778571 0.985892296 1.06865061
 524288 4.03351111 3.8429223 4.30291418
 8388608 142.819265 132.225105 156.294151
 134217728 168.054062 162.613804 174.357971
 536870912 216.799841 185.86157 263.376779
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
set xtics nomirror ('32K' 32768, '512K' 524288, '8M' 8388608, '128M' 134217728, '512M' 536870912)
set xrange [26987.4305:651865915]
set title 'memory latency: device host, op latency, pages thp, threads 1, node any, memory_node local' offset 0,1.6
set tmargin 5
unset key
set arrow from first 49152, graph 0 to first 49152, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 48K' at first 49152, graph 1 center offset 0,0.6 tc rgb '#808080'
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
set xtics nomirror ('32K' 32768, '512K' 524288, '8M' 8388608, '128M' 134217728, '512M' 536870912)
set xrange [26987.4305:651865915]
set title 'memory latency: device host, op latency, pages thp, threads 1, node any, memory_node local' offset 0,1.6
set tmargin 5
unset key
set arrow from first 49152, graph 0 to first 49152, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 48K' at first 49152, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 1048576, graph 0 to first 1048576, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L2 1M' at first 1048576, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 33554432, graph 0 to first 33554432, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L3 32M' at first 33554432, graph 1 center offset 0,0.6 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'latency'
unset output

$line0 << END
 32768 1.01848237 0.988289833 1.04237546
 524288 3.10024687 2.9569144 3.31286278
 8388608 118.062523 98.4431254 150.800406
 134217728 122.112136 112.856407 134.473363
 536870912 122.831512 115.731797 129.481648
END
set terminal svg dynamic noenhanced size 800,480 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
set output 'memory-latency_page_by_page.svg'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'latency_page_by_page (ns)'
set ytics nomirror
set logscale x 2
set format x '%g'
set logscale y 10
set format y '%g'
set yrange [*:*]
set xtics nomirror ('32K' 32768, '512K' 524288, '8M' 8388608, '128M' 134217728, '512M' 536870912)
set xrange [26987.4305:651865915]
set title 'memory latency_page_by_page: device host, op latency, pages thp, threads 1, node any, memory_node local' offset 0,1.6
set tmargin 5
unset key
set arrow from first 49152, graph 0 to first 49152, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 48K' at first 49152, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 1048576, graph 0 to first 1048576, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L2 1M' at first 1048576, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 33554432, graph 0 to first 33554432, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L3 32M' at first 33554432, graph 1 center offset 0,0.6 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'latency_page_by_page'
unset output

set terminal pngcairo noenhanced size 1600,960 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
set output 'memory-latency_page_by_page.png'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'latency_page_by_page (ns)'
set ytics nomirror
set logscale x 2
set format x '%g'
set logscale y 10
set format y '%g'
set yrange [*:*]
set xtics nomirror ('32K' 32768, '512K' 524288, '8M' 8388608, '128M' 134217728, '512M' 536870912)
set xrange [26987.4305:651865915]
set title 'memory latency_page_by_page: device host, op latency, pages thp, threads 1, node any, memory_node local' offset 0,1.6
set tmargin 5
unset key
set arrow from first 49152, graph 0 to first 49152, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 48K' at first 49152, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 1048576, graph 0 to first 1048576, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L2 1M' at first 1048576, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 33554432, graph 0 to first 33554432, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L3 32M' at first 33554432, graph 1 center offset 0,0.6 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'latency_page_by_page'
unset output

$line0 << END
 1048576 55.8238832 53.9763653 57.5706185
 268435456 13.2345603 9.17747916 18.5706064
END
$line1 << END
 1048576 41.0589053 24.0828652 70.0013759
END
$line2 << END
 1048576 2.63486023 2.09333623 3.42266619
END
$line3 << END
 1048576 13.0905456 11.8487806 14.5634329
END
$line4 << END
 1048576 17.7494643 10.5879015 29.1453907
END
$line5 << END
 1048576 17.7347699 10.5685541 29.1507817
END
$line6 << END
 1048576 35.4050981 21.1371081 58.2215086
END
set terminal svg dynamic noenhanced size 800,520 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
set output 'copy-bandwidth.svg'
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
set yrange [0:66.8400186]
set xtics nomirror ('1M' 1048576, '256M' 268435456)
set xrange [938501.809:299919482]
set title 'copy bandwidth: source node0, destination node0, memory pageable'
set tmargin 3
set key below left Left reverse samplen 3 width 1 height 1.5
set arrow from graph 0.0096, first 61.8889061 to graph 0.0288, first 61.8889061 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 61.89' at graph 0.0096, first 61.8889061 left offset 0,0.5 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'memcpy, one-way', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'shm, one-way', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#009e73' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 9 ps 0.7 lc rgb '#009e73' title 'pipe, one-way', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'cma, one-way', $line4 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line4 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'shm, forward', $line5 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#56b4e9' notitle, $line5 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#56b4e9' title 'shm, reverse', $line6 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#6b6b00' notitle, $line6 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#6b6b00' title 'shm, sum'
unset output

set terminal pngcairo noenhanced size 1600,1040 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
set output 'copy-bandwidth.png'
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
set yrange [0:66.8400186]
set xtics nomirror ('1M' 1048576, '256M' 268435456)
set xrange [938501.809:299919482]
set title 'copy bandwidth: source node0, destination node0, memory pageable'
set tmargin 3
set key below left Left reverse samplen 3 width 1 height 1.5
set arrow from graph 0.0096, first 61.8889061 to graph 0.0288, first 61.8889061 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 61.89' at graph 0.0096, first 61.8889061 left offset 0,0.5 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'memcpy, one-way', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'shm, one-way', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#009e73' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 9 ps 0.7 lc rgb '#009e73' title 'pipe, one-way', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'cma, one-way', $line4 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line4 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'shm, forward', $line5 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#56b4e9' notitle, $line5 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#56b4e9' title 'shm, reverse', $line6 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#6b6b00' notitle, $line6 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#6b6b00' title 'shm, sum'
unset output

$line0 << END
 0 0.142748519 0.0668434342 0.425
 1 34.3358312 31.3786105 38.5945
END
set terminal svg dynamic noenhanced size 800,160 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
set output 'net-latency.svg'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'latency (us)'
set ylabel ''
set ytics nomirror
set logscale x 10
set format x '%g'
set xrange [*:*]
set ytics nomirror ('shm' 0, 'tcp' 1)
set yrange [1.4:-0.5]
set xtics nomirror
set title 'net latency: size 8, node near, peer_node near'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'latency'
unset output

set terminal pngcairo noenhanced size 1600,320 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
set output 'net-latency.png'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'latency (us)'
set ylabel ''
set ytics nomirror
set logscale x 10
set format x '%g'
set xrange [*:*]
set ytics nomirror ('shm' 0, 'tcp' 1)
set yrange [1.4:-0.5]
set xtics nomirror
set title 'net latency: size 8, node near, peer_node near'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'latency'
unset output

$line0 << END
 0 0.260025498 0.182272812 0.351483752
 1 0.447270399 NaN NaN
 2 0.138102148 NaN NaN
 3 0.100229628 0.0682014326 0.166459038
END
set terminal svg dynamic noenhanced size 800,200 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
set output 'net-cpu_per_gb.svg'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'cpu_per_gb (s/GB)'
set ylabel ''
set ytics nomirror
set xrange [0:*]
set ytics nomirror ('own, threads' 0, 'both, machine' 1, 'both, softirq' 2, 'peer, threads' 3)
set yrange [3.4:-0.5]
set xtics nomirror 0.1
set title 'net cpu_per_gb: transport tcp, direction forward, size 1M, streams 1, threads 1, node near, peer_node near, mode blocking, busy_poll 0, buffer 0'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'cpu_per_gb'
unset output

set terminal pngcairo noenhanced size 1600,400 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
set output 'net-cpu_per_gb.png'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'cpu_per_gb (s/GB)'
set ylabel ''
set ytics nomirror
set xrange [0:*]
set ytics nomirror ('own, threads' 0, 'both, machine' 1, 'both, softirq' 2, 'peer, threads' 3)
set yrange [3.4:-0.5]
set xtics nomirror 0.1
set title 'net cpu_per_gb: transport tcp, direction forward, size 1M, streams 1, threads 1, node near, peer_node near, mode blocking, busy_poll 0, buffer 0'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'cpu_per_gb'
unset output

$line0 << END
 0 0.983393158 0.966048702 0.996120531
 1 1.58112019 NaN NaN
 2 0.48819706 NaN NaN
 3 0.37921068 0.268964522 0.588792685
END
set terminal svg dynamic noenhanced size 800,200 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
set output 'net-cpu_cores.svg'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'cpu_cores (cores)'
set ylabel ''
set ytics nomirror
set xrange [0:*]
set ytics nomirror ('own, threads' 0, 'both, machine' 1, 'both, softirq' 2, 'peer, threads' 3)
set yrange [3.4:-0.5]
set xtics nomirror 0.2
set title 'net cpu_cores: transport tcp, direction forward, size 1M, streams 1, threads 1, node near, peer_node near, mode blocking, busy_poll 0, buffer 0'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'cpu_cores'
unset output

set terminal pngcairo noenhanced size 1600,400 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
set output 'net-cpu_cores.png'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'cpu_cores (cores)'
set ylabel ''
set ytics nomirror
set xrange [0:*]
set ytics nomirror ('own, threads' 0, 'both, machine' 1, 'both, softirq' 2, 'peer, threads' 3)
set yrange [3.4:-0.5]
set xtics nomirror 0.2
set title 'net cpu_cores: transport tcp, direction forward, size 1M, streams 1, threads 1, node near, peer_node near, mode blocking, busy_poll 0, buffer 0'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'cpu_cores'
unset output

$line0 << END
 8 0.0245981732 0.0227226835 0.0267764997
 1048576 17.2183572 16.2639649 18.2373692
END
$line1 << END
 8 0.677100884 0.306372381 1.49643256
 1048576 74.9604272 51.8211406 127.113
END
set terminal svg dynamic noenhanced size 800,480 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
set output 'allreduce-time.svg'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'time (us)'
set ytics nomirror
set logscale x 2
set format x '%g'
set logscale y 10
set format y '%g'
set yrange [*:*]
set xtics nomirror ('8' 8, '1M' 1048576)
set xrange [6.32033049:1327241.99]
set title 'allreduce time: backend ring, transport shm, op allreduce, dtype f32, redop sum, fill node, scaling weak, segment 0, gap 0'
set tmargin 3
set key below left Left reverse samplen 3 width 1 height 1.5
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'ranks 1', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'ranks 2'
unset output

set terminal pngcairo noenhanced size 1600,960 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
set output 'allreduce-time.png'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'time (us)'
set ytics nomirror
set logscale x 2
set format x '%g'
set logscale y 10
set format y '%g'
set yrange [*:*]
set xtics nomirror ('8' 8, '1M' 1048576)
set xrange [6.32033049:1327241.99]
set title 'allreduce time: backend ring, transport shm, op allreduce, dtype f32, redop sum, fill node, scaling weak, segment 0, gap 0'
set tmargin 3
set key below left Left reverse samplen 3 width 1 height 1.5
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'ranks 1', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'ranks 2'
unset output

$line0 << END
 8 0.999339369 0.998626504 0.999868885
 1048576 0.998702414 0.99802907 0.999193993
END
$line1 << END
 8 1.00468017 0.966137398 1.04476056
 1048576 0.997729727 0.970165524 1.03372692
END
$line2 << END
 8 0 0 0
 1048576 0 0 0
END
$line3 << END
 8 1.97338054 1.95188629 1.99530694
 1048576 1.95383921 1.87830127 2.02597969
END
$line4 << END
 8 1.91799133 1.8838232 1.94275519
 1048576 1.96189487 1.88824637 2.03841593
END
$line5 << END
 8 0 0 0
 1048576 0 0 0
END
set terminal svg dynamic noenhanced size 800,500 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
set output 'allreduce-cpu_cores.svg'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'cpu_cores (cores)'
set ytics nomirror
set logscale x 2
set format x '%g'
set yrange [0:*]
set xtics nomirror ('8' 8, '1M' 1048576)
set xrange [6.32033049:1327241.99]
set title 'allreduce cpu_cores: backend ring, transport shm, op allreduce, dtype f32, redop sum, fill node, scaling weak, segment 0, gap 0'
set tmargin 3
set key below left Left reverse samplen 3 width 1 height 1.5
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'ranks 1, threads', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'ranks 1, machine', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#009e73' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 9 ps 0.7 lc rgb '#009e73' title 'ranks 1, softirq', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'ranks 2, threads', $line4 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line4 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'ranks 2, machine', $line5 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#56b4e9' notitle, $line5 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#56b4e9' title 'ranks 2, softirq'
unset output

set terminal pngcairo noenhanced size 1600,1000 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
set output 'allreduce-cpu_cores.png'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'cpu_cores (cores)'
set ytics nomirror
set logscale x 2
set format x '%g'
set yrange [0:*]
set xtics nomirror ('8' 8, '1M' 1048576)
set xrange [6.32033049:1327241.99]
set title 'allreduce cpu_cores: backend ring, transport shm, op allreduce, dtype f32, redop sum, fill node, scaling weak, segment 0, gap 0'
set tmargin 3
set key below left Left reverse samplen 3 width 1 height 1.5
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'ranks 1, threads', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'ranks 1, machine', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#009e73' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 9 ps 0.7 lc rgb '#009e73' title 'ranks 1, softirq', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'ranks 2, threads', $line4 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line4 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'ranks 2, machine', $line5 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#56b4e9' notitle, $line5 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#56b4e9' title 'ranks 2, softirq'
unset output

$line0 << END
 8 0.0118150801 0.00534604984 0.0261120118
 1048576 13.9883988 8.24916413 20.2345328
END
set terminal svg dynamic noenhanced size 800,480 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
set output 'allreduce-busbw.svg'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'busbw (GB/s)'
set ytics nomirror
set logscale x 2
set format x '%g'
set logscale y 10
set format y '%g'
set yrange [*:*]
set xtics nomirror ('8' 8, '1M' 1048576)
set xrange [6.32033049:1327241.99]
set title 'allreduce busbw: backend ring, transport shm, op allreduce, dtype f32, redop sum, ranks 2, fill node, scaling weak, segment 0, gap 0'
set tmargin 3
unset key
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'busbw'
unset output

set terminal pngcairo noenhanced size 1600,960 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
set output 'allreduce-busbw.png'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'busbw (GB/s)'
set ytics nomirror
set logscale x 2
set format x '%g'
set logscale y 10
set format y '%g'
set yrange [*:*]
set xtics nomirror ('8' 8, '1M' 1048576)
set xrange [6.32033049:1327241.99]
set title 'allreduce busbw: backend ring, transport shm, op allreduce, dtype f32, redop sum, ranks 2, fill node, scaling weak, segment 0, gap 0'
set tmargin 3
unset key
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'busbw'
unset output

$line0 << END
 8 85.4013728 38.8977115 187.501891
 1048576 0.0731246018 0.0500047301 0.12608211
END
set terminal svg dynamic noenhanced size 800,480 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
set output 'allreduce-cpu_per_gb.svg'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'cpu_per_gb (s/GB)'
set ytics nomirror
set logscale x 2
set format x '%g'
set logscale y 10
set format y '%g'
set yrange [*:*]
set xtics nomirror ('8' 8, '1M' 1048576)
set xrange [6.32033049:1327241.99]
set title 'allreduce cpu_per_gb: backend ring, transport shm, op allreduce, dtype f32, redop sum, ranks 2, fill node, scaling weak, segment 0, gap 0, scope threads'
set tmargin 3
unset key
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'cpu_per_gb'
unset output

set terminal pngcairo noenhanced size 1600,960 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
set output 'allreduce-cpu_per_gb.png'
reset
set datafile missing '?'
set border 3 lw 1
set tics out scale 0.5
set grid lt 1 lw 0.5 lc rgb '#dddddd'
set xlabel 'size (bytes)'
set ylabel 'cpu_per_gb (s/GB)'
set ytics nomirror
set logscale x 2
set format x '%g'
set logscale y 10
set format y '%g'
set yrange [*:*]
set xtics nomirror ('8' 8, '1M' 1048576)
set xrange [6.32033049:1327241.99]
set title 'allreduce cpu_per_gb: backend ring, transport shm, op allreduce, dtype f32, redop sum, ranks 2, fill node, scaling weak, segment 0, gap 0, scope threads'
set tmargin 3
unset key
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'cpu_per_gb'
unset output

