/** Programs that tests start and kill. They are started from what is built of them (built-program.ts, built-fixture.ts). */
export const FIXTURES = ['test/*/doomed-*.ts', 'test/*/fixtures/*.ts']
