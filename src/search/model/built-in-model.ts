/** A model that was built into the executable (`bun run build --model DIR`); build.ts then replaces this module. */
export interface BuiltInModel {
  /** `<organisation>/<name>`. */
  readonly id: string;
  readonly files: readonly {
    readonly name: string;
    readonly path: string;
    readonly size: number;
    readonly sha256: string;
  }[];
}

export const builtInModel: BuiltInModel | undefined = undefined;
