import { processState } from '../../src/core/base/process-state.ts';

/** A process warning of the package. */
export interface Warning {
  readonly message: string;
  readonly code: string;
  /** Where the operator is sent to read. */
  readonly detail: string;
}

/**
 * Keeps the warnings of each test from the standard error and from each other: what was warned of once may be warned of
 * again in the next test. Answers what the current test was warned of. Call it at the top level of the file.
 */
export function recordWarnings(): () => readonly Warning[] {
  const warnings: Warning[] = [];
  let emit: jest.SpyInstance;
  beforeEach(() => {
    warnings.length = 0;
    processState().warned.clear();
    emit = jest.spyOn(process, 'emitWarning').mockImplementation(((
      message: string,
      options: Omit<Warning, 'message'>,
    ) => {
      warnings.push({ message, code: options.code, detail: options.detail });
    }) as typeof process.emitWarning);
  });
  afterEach(() => {
    emit.mockRestore();
  });
  return () => warnings;
}
