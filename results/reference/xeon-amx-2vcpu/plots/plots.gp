# Draws the plots of this folder again: gnuplot plots.gp
set encoding utf8

$line0 << END
 1024 0.24924706 0.180069802 0.312900355
 2048 0.24961228 0.212937041 0.281086287
END
$line1 << END
 1024 0.0414971621 0.0375397583 0.0455228941
 2048 0.0415415217 0.0337356516 0.0549432822
END
$line2 << END
 1024 0.251437457 0.219216473 0.305761222
 2048 0.258826104 0.219287133 0.309488635
END
$line3 << END
 2048 0.13810426 0.0908504471 0.197553106
END
$line4 << END
 1024 0.0214338913 0.0169087881 0.0290797547
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
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'f32, onednn', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'f32, openblas', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#009e73' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 9 ps 0.7 lc rgb '#009e73' title 'f32, openblas-best', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'bf16, onednn', $line4 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line4 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'f64, openblas'
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
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'f32, onednn', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'f32, openblas', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#009e73' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 9 ps 0.7 lc rgb '#009e73' title 'f32, openblas-best', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'bf16, onednn', $line4 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line4 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'f64, openblas'
unset output

$line0 << END
 16384 445.198036 305.539886 623.806366
 262144 163.530784 103.678457 227.645924
 4194304 92.407721 83.9564429 105.594336
 67108864 54.176791 51.0516341 56.8406281
 1.07374182e+09 23.6873562 19.5211336 28.5984217
END
$line1 << END
 1.07374182e+09 24.431916 21.121241 29.632201
END
$line2 << END
 1.07374182e+09 14.702773 13.1991962 16.2365497
END
$line3 << END
 1.07374182e+09 20.0386423 14.6747186 26.440968
END
$line4 << END
 1.07374182e+09 36.6710983 34.5087561 39.865204
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
set xtics nomirror ('16K' 16384, '256K' 262144, '4M' 4194304, '64M' 67108864, '1G' 1073741824)
set xrange [13124.7289:1.34038472e+09]
set title 'memory bandwidth: device host, dtype f64, pages thp, threads 2, node any, memory_node local' offset 0,1.6
set tmargin 5
set key below left Left reverse samplen 3 width 1 height 1.5
set arrow from first 98304, graph 0 to first 98304, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 2x48K' at first 98304, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 4194304, graph 0 to first 4194304, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L2 2x2M' at first 4194304, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 272629760, graph 0 to first 272629760, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L3 260M' at first 272629760, graph 1 center offset 0,0.6 tc rgb '#808080'
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
set xtics nomirror ('16K' 16384, '256K' 262144, '4M' 4194304, '64M' 67108864, '1G' 1073741824)
set xrange [13124.7289:1.34038472e+09]
set title 'memory bandwidth: device host, dtype f64, pages thp, threads 2, node any, memory_node local' offset 0,1.6
set tmargin 5
set key below left Left reverse samplen 3 width 1 height 1.5
set arrow from first 98304, graph 0 to first 98304, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 2x48K' at first 98304, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 4194304, graph 0 to first 4194304, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L2 2x2M' at first 4194304, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 272629760, graph 0 to first 272629760, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L3 260M' at first 272629760, graph 1 center offset 0,0.6 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'triad, regular', $line1 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#d55e00' notitle, $line1 using 1:2 with linespoints lw 1.5 dt 1 pt 5 ps 0.7 lc rgb '#d55e00' title 'read', $line2 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#009e73' notitle, $line2 using 1:2 with linespoints lw 1.5 dt 1 pt 9 ps 0.7 lc rgb '#009e73' title 'write, regular', $line3 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#cc79a7' notitle, $line3 using 1:2 with linespoints lw 1.5 dt 1 pt 11 ps 0.7 lc rgb '#cc79a7' title 'copy, regular', $line4 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#e69f00' notitle, $line4 using 1:2 with linespoints lw 1.5 dt 1 pt 13 ps 0.7 lc rgb '#e69f00' title 'triad, nt'
unset output

$line0 << END
 16384 1.59384591 1.57616987 1.61172018
 262144 5.55854077 4.58093784 7.33698048
 4194304 34.8422517 33.5920801 36.0525894
 67108864 136.13782 130.010396 143.711823
 1.07374182e+09 173.54089 154.867812 192.68435
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
set xtics nomirror ('16K' 16384, '256K' 262144, '4M' 4194304, '64M' 67108864, '1G' 1073741824)
set xrange [13124.7289:1.34038472e+09]
set title 'memory latency: device host, op latency, pages thp, threads 1, node any, memory_node local' offset 0,1.6
set tmargin 5
unset key
set arrow from first 49152, graph 0 to first 49152, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 48K' at first 49152, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 2097152, graph 0 to first 2097152, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L2 2M' at first 2097152, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 272629760, graph 0 to first 272629760, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L3 260M' at first 272629760, graph 1 center offset 0,0.6 tc rgb '#808080'
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
set xtics nomirror ('16K' 16384, '256K' 262144, '4M' 4194304, '64M' 67108864, '1G' 1073741824)
set xrange [13124.7289:1.34038472e+09]
set title 'memory latency: device host, op latency, pages thp, threads 1, node any, memory_node local' offset 0,1.6
set tmargin 5
unset key
set arrow from first 49152, graph 0 to first 49152, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L1 48K' at first 49152, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 2097152, graph 0 to first 2097152, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L2 2M' at first 2097152, graph 1 center offset 0,0.6 tc rgb '#808080'
set arrow from first 272629760, graph 0 to first 272629760, graph 1 nohead dt 3 lw 1 lc rgb '#808080'
set label 'L3 260M' at first 272629760, graph 1 center offset 0,0.6 tc rgb '#808080'
plot $line0 using 1:3:(0):($4-$3) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 1:2 with linespoints lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'latency'
unset output

$line0 << END
 0 23.4947719 20.4123605 28.4239273
 1 16.0080146 14.8114717 17.5714626
 2 2.25872862 2.08515094 2.39490821
 3 13.0762773 11.4238098 14.9893598
 4 6.2912284 6.04807196 6.5048884
 5 6.3113424 6.05214017 6.52149952
 6 12.5519482 12.0670092 12.9760473
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
set xtics nomirror 5
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
set xtics nomirror 5
set title 'copy bandwidth: source node0, destination node0, memory pageable, size 1M'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'bandwidth'
unset output

$line0 << END
 0 0.298812376 0.273951191 0.326
 1 45.3817848 43.756 46.6156666
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
 0 0.268123464 0.246843327 0.292711656
 1 0.146763735 0.131293359 0.163332205
 2 0.429314818 0.196067952 0.940037425
 3 0.126058397 0.00477482127 3.32802391
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
set ytics nomirror ('own, threads' 0, 'peer, threads' 1, 'both, machine' 2, 'both, softirq' 3)
set yrange [3.4:-0.5]
set xtics nomirror 0.5
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
set ytics nomirror ('own, threads' 0, 'peer, threads' 1, 'both, machine' 2, 'both, softirq' 3)
set yrange [3.4:-0.5]
set xtics nomirror 0.5
set title 'net cpu_per_gb: transport tcp, direction forward, size 1M, streams 1, threads 1, node near, peer_node near, mode blocking, busy_poll 0, buffer 0'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'cpu_per_gb'
unset output

$line0 << END
 0 0.898995296 0.804618442 1.01437519
 1 0.488909484 0.442521378 0.528988473
 2 1.41172889 0.586406405 3.39863011
 3 0.414521636 0.0142806904 12.0322044
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
set ytics nomirror ('own, threads' 0, 'peer, threads' 1, 'both, machine' 2, 'both, softirq' 3)
set yrange [3.4:-0.5]
set xtics nomirror 2
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
set ytics nomirror ('own, threads' 0, 'peer, threads' 1, 'both, machine' 2, 'both, softirq' 3)
set yrange [3.4:-0.5]
set xtics nomirror 2
set title 'net cpu_cores: transport tcp, direction forward, size 1M, streams 1, threads 1, node near, peer_node near, mode blocking, busy_poll 0, buffer 0'
set tmargin 3
unset key
plot $line0 using 3:1:($4-$3):(0) with vectors heads size screen 0.005,90 lw 1 lc rgb '#0072b2' notitle, $line0 using 2:1 with points lw 1.5 dt 1 pt 7 ps 0.7 lc rgb '#0072b2' title 'cpu_cores'
unset output

$line0 << END
 8 0.0405893166 0.0317413373 0.0519036928
 1048576 41.6954641 35.347273 50.8320185
END
$line1 << END
 8 0.899861178 0.413794741 1.54441409
 1048576 219.581997 174.990157 302.044429
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
 8 1.00011145 0.998963557 1.00091864
 1048576 0.997279174 0.989910184 1.00322334
END
$line1 << END
 8 0.988693146 0.982658538 0.996194135
 1048576 1.01154335 0.963885877 1.06155716
END
$line2 << END
 8 0 0 0
 1048576 0 0 0
END
$line3 << END
 8 1.75460295 1.25198694 2.23213535
 1048576 1.88475906 1.58913179 2.1242185
END
$line4 << END
 8 1.80360093 1.54850107 2.10072591
 1048576 1.78874425 1.35960126 2.35334145
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
 8 0.00889026168 0.00517995943 0.0193332569
 1048576 4.77532832 3.47159532 5.99220086
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
 8 130.212334 72.6308094 204.596628
 1048576 0.212254337 0.171899288 0.280802114
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

