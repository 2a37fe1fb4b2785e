package capacity

const failurePolicy = "a request that failed, or whose reply broke its contract, keeps its time and its counts under failures " +
	"and is in no distribution"

// methodology says how each figure came about.
func methodology() object {
	return object{
		"clock": "the client's monotonic clock; zero is the moment before a request's first byte is written, after a " +
			"connection was had",
		"artifact_timestamps": "Unix time of the client's host at the start and at the end; times of two documents " +
			"may be lined up only where both name the same clock_domain_id",
		"ttft":                 "from dispatch to the first piece of visible text that is not empty",
		"time_to_first_output": "from dispatch to the first piece of reasoning or visible text that is not empty",
		"effective_prefill": "prompt tokens by usage over the time to the first output, which holds waiting, scheduling, " +
			"prefill and the first token",
		"generation": "from the first output to the end of the body",
		"decode": "completion tokens by usage, less the first, over the generation time; usage may count reasoning among " +
			"them",
		"tpot": "generation time over the completion tokens less the first: a mean of each request",
		"mean_inter_token_latency": "another name of tpot, kept for older readers; it is not measured between single " +
			"tokens",
		"distributions": "over the valid replies: mean, sample standard deviation, the interval of 1.96 standard errors around " +
			"the mean, least, greatest, and percentiles by nearest rank; extensions have intervals that hold for few replies too",
		"p99": "always given by nearest rank; with fewer than 100 replies it describes them and says nothing of the tail",
		"request_canaries": "where asked for, a reply must begin with its own marker and hold no other request's; a reply " +
			"whose visible text was cut cannot pass; one that does not pass is in no distribution",
		"controlled_output": "where a number of words is asked for, replies are counted; under observe that is all, under " +
			"strict a reply with another number fails; visible text is kept up to 8192 characters",
	}
}
