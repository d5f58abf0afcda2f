# Draws the plots of this folder again: gnuplot plots.gp
set encoding utf8

$line0 << END
 1024 0.489059563 0.480826762 0.499152283
 2048 0.480841377 0.473576142 0.488218069
END
$line1 << END
 1024 0.451432805 0.441485321 0.46421841
 2048 0.459974466 0.458057418 0.461899537
END
$line2 << END
 2048 0.95648621 0.941435095 0.975000446
END
$line3 << END
 1024 0.195149506 0.192389883 0.197948713
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
set yrange [0:1.15562676]
set xtics nomirror ('1024' 1024, '2048' 2048)
set xrange [1003.52:2068.48]
set title 'gemm throughput: device host, data random, threads 2'
set tmargin 3
set key below left Left reverse samplen 3 width 1 height 1.5
set arrow from graph 0.0096, first 0.541404839 to graph 0.9904, first 0.541404839 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 0.5414' at graph 0.9904, first 0.541404839 right offset 0,0.5 tc rgb '#808080'
set arrow from graph 0.9712, first 1.07002478 to graph 0.9904, first 1.07002478 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 1.07' at graph 0.9904, first 1.07002478 right offset 0,0.5 tc rgb '#808080'
set arrow from graph 0.0096, first 0.26820506 to graph 0.0288, first 0.26820506 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 0.2682' at graph 0.0096, first 0.26820506 left offset 0,0.5 tc rgb '#808080'
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
set yrange [0:1.15562676]
set xtics nomirror ('1024' 1024, '2048' 2048)
set xrange [1003.52:2068.48]
set title 'gemm throughput: device host, data random, threads 2'
set tmargin 3
set key below left Left reverse samplen 3 width 1 height 1.5
set arrow from graph 0.0096, first 0.541404839 to graph 0.9904, first 0.541404839 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 0.5414' at graph 0.9904, first 0.541404839 right offset 0,0.5 tc rgb '#808080'
set arrow from graph 0.9712, first 1.07002478 to graph 0.9904, first 1.07002478 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 1.07' at graph 0.9904, first 1.07002478 right offset 0,0.5 tc rgb '#808080'
set arrow from graph 0.0096, first 0.26820506 to graph 0.0288, first 0.26820506 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 0.2682' at graph 0.0096, first 0.26820506 left offset 0,0.5 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'f32, onednn', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'f32, openblas', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'bf16, onednn', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'f64, openblas'
unset output

$line0 << END
 32768 1309.5932 1236.23409 1385.0515
 524288 381.561024 368.636394 399.009893
 8388608 205.180142 196.950627 212.969675
 134217728 49.0015383 45.6405039 52.6100843
END
$line1 << END
 134217728 49.1839655 46.1965313 52.2789528
END
$line2 << END
 134217728 34.563876 32.1647043 37.7087255
END
$line3 << END
 134217728 46.1888502 43.8446145 49.0689752
END
$line4 << END
 134217728 73.5264964 51.1228939 123.943312
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
 32768 0.971918867 0.942117035 0.998587003
 524288 3.88013466 3.75209195 4.02182208
 8388608 15.6673492 14.218221 17.2350162
 134217728 156.20139 152.805804 160.091668
 536870912 175.716707 166.700768 187.859154
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
 32768 0.96912439 0.938879079 1.00034403
 524288 2.98868411 2.8493617 3.11442061
 8388608 9.59124862 9.20553894 10.0219703
 134217728 108.032944 99.6849941 117.163107
 536870912 109.85055 104.11011 116.153197
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
 1048576 58.5484514 57.9977267 59.3148201
 268435456 19.1590466 18.3486376 20.0052492
END
$line1 << END
 1048576 41.649298 19.3502407 77.9099557
END
$line2 << END
 1048576 3.89539513 3.60511015 4.19884295
END
$line3 << END
 1048576 15.2497533 14.5791472 15.8354099
END
$line4 << END
 1048576 26.0318469 25.431171 26.5886027
END
$line5 << END
 1048576 26.0438855 25.4292227 26.6408951
END
$line6 << END
 1048576 51.9841556 50.7785009 53.0137947
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
set yrange [0:70.7285964]
set xtics nomirror ('1M' 1048576, '256M' 268435456)
set xrange [938501.809:299919482]
set title 'copy bandwidth: source node0, destination node0, memory pageable'
set tmargin 3
set key below left Left reverse samplen 3 width 1 height 1.5
set arrow from graph 0.0096, first 65.4894411 to graph 0.0288, first 65.4894411 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 65.49' at graph 0.0096, first 65.4894411 left offset 0,0.5 tc rgb '#808080'
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
set yrange [0:70.7285964]
set xtics nomirror ('1M' 1048576, '256M' 268435456)
set xrange [938501.809:299919482]
set title 'copy bandwidth: source node0, destination node0, memory pageable'
set tmargin 3
set key below left Left reverse samplen 3 width 1 height 1.5
set arrow from graph 0.0096, first 65.4894411 to graph 0.0288, first 65.4894411 nohead dt 3 lw 1 lc rgb '#808080'
set label 'limit 65.49' at graph 0.0096, first 65.4894411 left offset 0,0.5 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'memcpy, one-way', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'shm, one-way', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#009e73' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 9 ps 0.7 lc rgb '#009e73' title 'pipe, one-way', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'cma, one-way', $line4 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line4 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'shm, forward', $line5 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#56b4e9' notitle, $line5 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#56b4e9' title 'shm, reverse', $line6 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#6b6b00' notitle, $line6 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#6b6b00' title 'shm, sum'
unset output

$line0 << END
 0 0.100930039 0.095 0.106296716
 1 27.9546859 25.4969965 31.331
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
 0 0.189119108 0.169476907 0.209632324
 1 0.0748179849 0.0713900142 0.0788283088
END
set terminal svg dynamic noenhanced size 800,160 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
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
set ytics nomirror ('own' 0, 'peer' 1)
set yrange [1.4:-0.5]
set xtics nomirror 0.05
set title 'net cpu_per_gb: transport tcp, direction forward, size 1M, streams 1, threads 1, node near, peer_node near, mode blocking, busy_poll 0, buffer 0, scope threads'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'cpu_per_gb'
unset output

set terminal pngcairo noenhanced size 1600,320 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
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
set ytics nomirror ('own' 0, 'peer' 1)
set yrange [1.4:-0.5]
set xtics nomirror 0.05
set title 'net cpu_per_gb: transport tcp, direction forward, size 1M, streams 1, threads 1, node near, peer_node near, mode blocking, busy_poll 0, buffer 0, scope threads'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'cpu_per_gb'
unset output

$line0 << END
 0 0.977899124 0.951183773 0.997762343
 1 0.379430426 0.341565674 0.418121214
END
set terminal svg dynamic noenhanced size 800,160 font 'Helvetica,Arial,sans-serif,13' background '#ffffff'
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
set ytics nomirror ('own' 0, 'peer' 1)
set yrange [1.4:-0.5]
set xtics nomirror 0.2
set title 'net cpu_cores: transport tcp, direction forward, size 1M, streams 1, threads 1, node near, peer_node near, mode blocking, busy_poll 0, buffer 0, scope threads'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'cpu_cores'
unset output

set terminal pngcairo noenhanced size 1600,320 font 'DejaVu Sans,20' background '#ffffff' linewidth 2 pointscale 2
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
set ytics nomirror ('own' 0, 'peer' 1)
set yrange [1.4:-0.5]
set xtics nomirror 0.2
set title 'net cpu_cores: transport tcp, direction forward, size 1M, streams 1, threads 1, node near, peer_node near, mode blocking, busy_poll 0, buffer 0, scope threads'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'cpu_cores'
unset output

$line0 << END
 8 0.0223903535 0.0207381557 0.0241718686
 1048576 15.8083378 15.3668904 16.3135185
END
$line1 << END
 8 0.47357378 0.255990262 1.14585062
 1048576 59.4857447 57.6626891 61.8263529
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
 8 0.999572629 0.999448846 0.999674444
 1048576 0.998996817 0.997655359 0.999934036
END
$line1 << END
 8 0.984061032 0.972944806 0.996667418
 1048576 0.997245557 0.950596444 1.0461839
END
$line2 << END
 8 0 0 0
 1048576 0 0 0
END
$line3 << END
 8 1.99204546 1.97238327 2.00588446
 1048576 1.95430223 1.81857784 2.05561067
END
$line4 << END
 8 1.99061248 1.9243716 2.04406727
 1048576 1.93438529 1.76491103 2.12013319
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
 8 0.0168928276 0.00698171286 0.0312511903
 1048576 17.6273495 16.960017 18.1846534
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
 8 59.2612503 32.0693719 143.191363
 1048576 0.0574291446 0.0556500013 0.0593707343
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

