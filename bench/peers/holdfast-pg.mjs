// Holdfast on PostgreSQL.
import { make } from './holdfast.mjs'

export default make({ onPg: true })
