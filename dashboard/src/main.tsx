import { render } from 'preact'

import { App } from './app.tsx'
import { startClock } from './state/clock.ts'
import { startKeys } from './state/keys.ts'
import { startRouter } from './state/router.ts'
import { begin } from './state/session.ts'
import './style.css'

startRouter()
startKeys()
startClock()
const root = document.getElementById('app')
if (root !== null) render(<App />, root)
void begin()
