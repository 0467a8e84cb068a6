import { raceForTheEnd } from './terminal.ts'

raceForTheEnd('sqlite')
