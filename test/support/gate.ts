/** A promise that a test opens. */
export interface Gate extends Promise<void> {
  open(): void;
}

export function gate(): Gate {
  let open = (): void => {};
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return Object.assign(promise, { open });
}
