import { z } from 'zod'

import { API, IMPLIED } from '../api/endpoint.ts'
import type { Endpoint } from '../api/endpoint.ts'
import { ENDPOINTS, ENDPOINT_NAMES, partsOf } from '../api/endpoints.ts'
import type { EndpointName } from '../api/endpoints.ts'
import { ROUTES } from '../api/routes.ts'

type Json = Readonly<Record<string, unknown>>

/** OpenAPI 3.1 speaks JSON Schema itself, so a schema goes in as it is. */
const schemaOf = (schema: z.ZodType): Json => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return rest
}

/** The document of all routes, made from the same table that routes and checks requests. */
export function openApiDocument(): Json {
  const paths: Record<string, Record<string, Json>> = {}
  for (const name of ENDPOINT_NAMES) {
    const { path, method } = ENDPOINTS[name]
    const place = `${API}${path.replaceAll(/:(\w+)/g, '{$1}')}`
    paths[place] = { ...paths[place], [method.toLowerCase()]: operationOf(name) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Holdfast',
      version: '1',
      description:
        'What an operator of agents sees and does. Every answer that is no success has an error with a code.',
    },
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: { Error: schemaOf(errorShape) },
    },
  }
}

const errorShape = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    remedy: z.string().optional(),
    retry: z.object({ afterMs: z.number() }).optional(),
  }),
})

function operationOf(name: EndpointName): Json {
  const { summary, scope, status, answers, method }: Endpoint = ENDPOINTS[name]
  const { answer } = ROUTES[name]
  const good = { description: summary, content: { [answers ?? 'application/json']: { schema: schemaOf(answer) } } }
  const bad = { description: 'it was not done', content: { 'application/json': { schema: ERROR } } }
  return {
    operationId: name,
    summary,
    description: scopeNote(scope),
    ...(scope === 'nobody' ? { security: [] } : { security: [{ token: [] }] }),
    parameters: [...pathParameters(name), ...(method === 'GET' ? queryParameters(name) : [])],
    ...(method === 'POST' ? { requestBody: bodyOf(name) } : {}),
    responses: { [status ?? 200]: good, default: bad },
  }
}

const ERROR = { $ref: '#/components/schemas/Error' }

function scopeNote(scope: Endpoint['scope']): string {
  if (scope === 'nobody') return 'Needs no token.'
  if (scope === 'anybody') return 'Needs any token.'
  const wider = Object.entries(IMPLIED).flatMap(([name, has]) => (has.includes(scope) ? [name] : []))
  return `Needs a token with the scope ${wider.join(' or ')}.`
}

const pathParameters = (name: EndpointName): Json[] =>
  partsOf(ENDPOINTS[name].path).map((part) => ({ name: part, in: 'path', required: true, schema: { type: 'string' } }))

function queryParameters(name: EndpointName): Json[] {
  const { properties = {}, required = [] } = schemaOf(ROUTES[name].ask) as {
    readonly properties?: Readonly<Record<string, Json>>
    readonly required?: readonly string[]
  }
  return Object.entries(properties).map(([field, schema]) => ({
    name: field,
    in: 'query',
    required: required.includes(field),
    schema,
  }))
}

const bodyOf = (name: EndpointName): Json => ({
  required: Object.values(ROUTES[name].ask.shape).some((field) => !(field as z.ZodType).safeParse(undefined).success),
  content: { 'application/json': { schema: schemaOf(ROUTES[name].ask) } },
})
