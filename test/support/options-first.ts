/** The last parameters of a helper: a function, after options that a call may leave out. */
export type OptionsFirst<Options, Run> = readonly [run: Run] | readonly [options: Options | undefined, run: Run];

export function optionsOf<Options, Run>(args: OptionsFirst<Options, Run>): readonly [Options | undefined, Run] {
  return args.length === 1 ? [undefined, args[0]] : args;
}
