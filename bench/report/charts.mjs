import { init } from 'echarts';
import { sizeOf } from './sizes.mjs';

const width = 720;
const height = 400;
const colors = ['#2563eb', '#d97706'];

/**
 * A scenario's curve as an SVG picture: the sizes on a logarithmic axis, and a line for each series. The bars are the
 * quartiles of its rounds.
 */
export function drawCurve({ chart, title }, { rows }) {
  const sizes = rows.map(({ name }) => sizeOf(name));
  const picture = init(null, null, { renderer: 'svg', ssr: true, width, height });
  picture.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    title: { text: title, left: 'center', top: 10, textStyle: { fontSize: 15 } },
    legend: { bottom: 8, data: Object.values(chart.series) },
    grid: { left: 70, right: 40, top: 70, bottom: 80 },
    xAxis: {
      ...{ type: 'log', logBase: chart.base ?? 10, min: Math.min(...sizes), max: Math.max(...sizes) },
      ...{ name: chart.x, nameLocation: 'middle', nameGap: 28 },
    },
    yAxis: { name: chart.y, ...(chart.isLog ? { type: 'log' } : { type: 'value', min: 0 }) },
    series: Object.entries(chart.series).flatMap(([key, name], i) => {
      const points = rows.map(({ name: row, figures }) => ({ size: sizeOf(row), ...figures[key] }));
      return lineWithBars(points, name, colors[i]);
    }),
  });
  const svg = picture.renderToSVGString();
  picture.dispose();
  return `${svg}\n`;
}

function lineWithBars(points, name, color) {
  const line = { type: 'line', name, color, symbolSize: 7, data: points.map(({ size, value }) => [size, value]) };
  const bars = points.map(({ size, low, high }) => [{ coord: [size, low] }, { coord: [size, high] }]);
  const style = { symbol: 'none', silent: true, lineStyle: { color, width: 6, opacity: 0.25, type: 'solid' } };
  // Marks do not stretch the axis, and one that does not fit is not drawn. An invisible line through their ends does.
  const ends = points.flatMap(({ size, low, high }) => [
    [size, low],
    [size, high],
  ]);
  const stretch = { type: 'line', data: ends, symbol: 'none', silent: true, lineStyle: { opacity: 0 } };
  return [{ ...line, markLine: { ...style, data: bars } }, stretch];
}
