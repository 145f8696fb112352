// The code under test: it knows nothing of tests.
const { getLock } = require('reenlock');

exports.ship = (id) => getLock(`order:${id}`).run(async (hold) => hold.fence);
