// A test takes 15 s at most, on a busy machine too, so that a broken line is soon seen. Only these rooms have longer:
// their tests start processes, break servers and wait for them. A file that needs still more says why.
const slowRooms = /[/]test[/](docs|examples|fault|package|parity|support|stores[/](cas|quorum|redis))[/]/;
const { testPath } = expect.getState();

if (slowRooms.test(testPath) && !testPath.endsWith('.contract.test.ts')) jest.setTimeout(60_000);
