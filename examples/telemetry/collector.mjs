// A collector that prints: OTLP as JSON over HTTP, a line for each span and for each figure. `node collector.mjs [PORT]`
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  let body = ''
  request.on('data', (piece) => (body += piece))
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    tell(JSON.parse(body))
  })
})

function tell(told) {
  for (const span of spansIn(told)) console.log(spanLine(span))
  for (const metric of metricsIn(told)) for (const line of metricLines(metric)) console.log(line)
}

server.listen(Number(process.argv[2] ?? 4318), '127.0.0.1', () =>
  console.log(`collecting at http://127.0.0.1:${server.address().port}`),
)

const spansIn = ({ resourceSpans = [] }) =>
  resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
const metricsIn = ({ resourceMetrics = [] }) =>
  resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))

const valueOf = ({ stringValue, intValue, doubleValue, boolValue, arrayValue }) =>
  stringValue ?? intValue ?? doubleValue ?? boolValue ?? arrayValue?.values.map(valueOf).join('+') ?? ''
const inWords = (attributes = []) => attributes.map(({ key, value }) => `${key}=${valueOf(value)}`).join(' ')

function spanLine({ name, spanId, parentSpanId = '', startTimeUnixNano, endTimeUnixNano, attributes, links = [] }) {
  const ms = (Number(endTimeUnixNano) - Number(startTimeUnixNano)) / 1e6
  const below = parentSpanId === '' ? '' : ` below ${parentSpanId}`
  const after = links.map((link) => ` after ${link.spanId}`).join('')
  return `span ${spanId}${below}${after} | ${name} | ${ms.toFixed(1)} ms | ${inWords(attributes)}`
}

function metricLines({ name, gauge, sum, histogram }) {
  const points = (histogram ?? gauge ?? sum)?.dataPoints ?? []
  return points.map((point) => {
    const figure =
      histogram === undefined ? (point.asInt ?? point.asDouble) : `${point.count} × ø ${point.sum / point.count}`
    return `metric ${name} ${figure} ${inWords(point.attributes)}`
  })
}
